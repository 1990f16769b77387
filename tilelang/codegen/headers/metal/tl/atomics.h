// Updates of 32-bit elements that no other thread can interrupt. Each gives the old value.
#pragma once
#include <tl/common.h>

namespace tl {

// Compare and swap until nothing came between.
#define TL_ATOMIC_UPDATE(space, name, expression)                                         \
  template <class T> TL_INLINE T updated_##name(space T* place, T value) {                \
    auto word = reinterpret_cast<space metal::atomic_uint*>(place);                       \
    uint seen = metal::atomic_load_explicit(word, metal::memory_order_relaxed);           \
    T old = as_type<T>(seen);                                                             \
    while (!metal::atomic_compare_exchange_weak_explicit(                                 \
        word, &seen, as_type<uint>(T(expression)), metal::memory_order_relaxed,           \
        metal::memory_order_relaxed))                                                     \
      old = as_type<T>(seen);                                                             \
    return old;                                                                           \
  }
#define TL_ATOMIC_UPDATES(space)                \
  TL_ATOMIC_UPDATE(space, add, old + value)     \
  TL_ATOMIC_UPDATE(space, max, max(old, value)) \
  TL_ATOMIC_UPDATE(space, min, min(old, value)) \
  TL_ATOMIC_UPDATE(space, exch, value)
TL_MEMORIES(TL_ATOMIC_UPDATES)
#undef TL_ATOMIC_UPDATES
#undef TL_ATOMIC_UPDATE

#define TL_ATOMIC(space, name, function, T, object)                                       \
  TL_INLINE T relaxed_##name(space T* place, T value) {                                   \
    return metal::function(reinterpret_cast<space metal::object*>(place), value,          \
                           metal::memory_order_relaxed);                                  \
  }
#define TL_ATOMICS_OF(space, T, object)                          \
  TL_ATOMIC(space, add, atomic_fetch_add_explicit, T, object)    \
  TL_ATOMIC(space, max, atomic_fetch_max_explicit, T, object)    \
  TL_ATOMIC(space, min, atomic_fetch_min_explicit, T, object)    \
  TL_ATOMIC(space, and, atomic_fetch_and_explicit, T, object)    \
  TL_ATOMIC(space, or, atomic_fetch_or_explicit, T, object)      \
  TL_ATOMIC(space, xor, atomic_fetch_xor_explicit, T, object)    \
  TL_ATOMIC(space, exch, atomic_exchange_explicit, T, object)
#define TL_ATOMICS(space)                                                                 \
  TL_ATOMICS_OF(space, int, atomic_int)                                                   \
  TL_ATOMICS_OF(space, uint, atomic_uint)                                                 \
  TL_INLINE float relaxed_max(space float* place, float value) {                          \
    return updated_max(place, value);                                                     \
  }                                                                                       \
  TL_INLINE float relaxed_min(space float* place, float value) {                          \
    return updated_min(place, value);                                                     \
  }                                                                                       \
  TL_INLINE float relaxed_exch(space float* place, float value) {                         \
    return updated_exch(place, value);                                                    \
  }
TL_MEMORIES(TL_ATOMICS)
// Metal adds floats in device memory itself.
TL_ATOMIC(device, add, atomic_fetch_add_explicit, float, atomic_float)
#ifndef TL_ONE_ADDRESS_SPACE
TL_INLINE float relaxed_add(threadgroup float* place, float value) {
  return updated_add(place, value);
}
#endif
#undef TL_ATOMICS
#undef TL_ATOMICS_OF
#undef TL_ATOMIC

#define TL_ORDERED(space, name)                                                           \
  template <class T, class V> TL_INLINE T atomic_##name(space T* place, V value) {        \
    return relaxed_##name(place, cast<T>(value));                                         \
  }
#define TL_ALL_ORDERED(space)                                                             \
  TL_ORDERED(space, add)                                                                  \
  TL_ORDERED(space, max)                                                                  \
  TL_ORDERED(space, min)                                                                  \
  TL_ORDERED(space, and)                                                                  \
  TL_ORDERED(space, or)                                                                   \
  TL_ORDERED(space, xor)                                                                  \
  TL_ORDERED(space, exch)
TL_MEMORIES(TL_ALL_ORDERED)
#undef TL_ALL_ORDERED

// Neighbours: each element is atomic by itself.
#define TL_ATOMIC_ADD_NEIGHBOURS(space)                                                   \
  template <class T, int N> TL_INLINE vec<T, N> add_each(space T* place, vec<T, N> value) { \
    vec<T, N> old;                                                                        \
    for (int i = 0; i < N; ++i) old.lanes[i] = relaxed_add(place + i, value.lanes[i]);    \
    return old;                                                                           \
  }                                                                                       \
  template <class T> TL_INLINE vec<T, 2> atomic_addx2(space T* place, vec<T, 2> value) {  \
    return add_each(place, value);                                                        \
  }                                                                                       \
  template <class T> TL_INLINE vec<T, 4> atomic_addx4(space T* place, vec<T, 4> value) {  \
    return add_each(place, value);                                                        \
  }
TL_MEMORIES(TL_ATOMIC_ADD_NEIGHBOURS)
#undef TL_ATOMIC_ADD_NEIGHBOURS
#undef TL_ORDERED

}  // namespace tl
