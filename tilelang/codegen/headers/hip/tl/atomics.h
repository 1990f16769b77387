// Updates that no other thread can interrupt. Each gives the old value; where it is not used the
// compiler drops it. Stronger orders than relaxed are fences around the update.
#pragma once
#include <tl/common.h>

namespace tl {

TL_CONSTEXPR bool releases(memory_order order) {
  return order == memory_order::release || order == memory_order::acq_rel ||
         order == memory_order::seq_cst;
}
TL_CONSTEXPR bool acquires(memory_order order) {
  return order != memory_order::relaxed && order != memory_order::release;
}

// The integer with as many bits as an element.
template <int bytes> struct bits_of;
template <> struct bits_of<1> { using type = uint8; };
template <> struct bits_of<2> { using type = uint16; };
template <> struct bits_of<4> { using type = uint32; };
template <> struct bits_of<8> { using type = uint64; };

template <class W> TL_DEVICE bool swapped(W* place, W& seen, W made) {
  return __hip_atomic_compare_exchange_strong(place, &seen, made, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class W> TL_DEVICE W looked_at(const W* place) {
  return __hip_atomic_load(const_cast<W*>(place), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// The generic form: swap the word that holds the element until nothing came between.
template <class T, class F> TL_DEVICE T atomic_update(T* place, F change) {
  if constexpr (sizeof(T) < 4) {
    using part = typename bits_of<sizeof(T)>::type;
    const auto address = reinterpret_cast<uint64>(place);
    auto* word = reinterpret_cast<uint32*>(address & ~uint64(3));
    const int shift = int(address & 3) * 8;
    const uint32 mask = uint32(part(~part(0))) << shift;
    uint32 seen = looked_at(word), made;
    do {
      const T old = bit_cast<T>(part(seen >> shift));
      made = (seen & ~mask) | (uint32(bit_cast<part>(T(change(old)))) << shift);
    } while (!swapped(word, seen, made));
    return bit_cast<T>(part(seen >> shift));
  } else {
    using word = typename bits_of<sizeof(T)>::type;
    auto* raw = reinterpret_cast<word*>(place);
    word seen = looked_at(raw);
    while (!swapped(raw, seen, bit_cast<word>(T(change(bit_cast<T>(seen)))))) {
    }
    return bit_cast<T>(seen);
  }
}

template <class T> struct is_plain {
  static constexpr bool value = is_same<T, int>::value || is_same<T, uint32>::value ||
                                is_same<T, int64>::value || is_same<T, uint64>::value;
};

template <class T> TL_DEVICE T relaxed_add(T* place, T value) {
  if constexpr (is_plain<T>::value || is_real<T>::value)
    return __hip_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  else return atomic_update(place, [=](T old) { return T(old + value); });
}
#define TL_UPDATE(name, builtin, changed)                                                  \
  template <class T> TL_DEVICE T relaxed_##name(T* place, T value) {                       \
    if constexpr (is_plain<T>::value)                                                      \
      return builtin(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);            \
    else return atomic_update(place, [=](T old) { return T(changed); });                   \
  }
TL_UPDATE(max, __hip_atomic_fetch_max, max(old, value))
TL_UPDATE(min, __hip_atomic_fetch_min, min(old, value))
TL_UPDATE(and, __hip_atomic_fetch_and, old & value)
TL_UPDATE(or, __hip_atomic_fetch_or, old | value)
TL_UPDATE(xor, __hip_atomic_fetch_xor, old ^ value)
#undef TL_UPDATE
template <class T> TL_DEVICE T relaxed_exch(T* place, T value) {
  return atomic_update(place, [=](T) { return value; });
}

#define TL_ORDERED(name)                                                                  \
  template <memory_order order = memory_order::relaxed, class T, class V>                 \
  TL_DEVICE T atomic_##name(T* place, V value) {                                          \
    if constexpr (releases(order)) __threadfence();                                       \
    const T old = relaxed_##name(place, cast<T>(value));                                  \
    if constexpr (acquires(order)) __threadfence();                                       \
    return old;                                                                           \
  }
TL_ORDERED(add)
TL_ORDERED(max)
TL_ORDERED(min)
TL_ORDERED(and)
TL_ORDERED(or)
TL_ORDERED(xor)
TL_ORDERED(exch)
#undef TL_ORDERED

// Compares bits: floats are equal when all of theirs are.
template <memory_order order = memory_order::relaxed, class T, class V>
TL_DEVICE T atomic_cas(T* place, V compare, V value) {
  using code = typename bits_of<sizeof(T)>::type;
  if constexpr (releases(order)) __threadfence();
  const code wanted = bit_cast<code>(cast<T>(compare));
  const T old = atomic_update(place, [=](T seen) {
    return bit_cast<code>(seen) == wanted ? cast<T>(value) : seen;
  });
  if constexpr (acquires(order)) __threadfence();
  return old;
}

template <memory_order order = memory_order::seq_cst, class T>
TL_DEVICE T atomic_load(const T* place) {
  using code = typename bits_of<sizeof(T)>::type;
  if constexpr (order == memory_order::seq_cst) __threadfence();
  const T out = bit_cast<T>(looked_at(reinterpret_cast<const code*>(place)));
  if constexpr (acquires(order)) __threadfence();
  return out;
}
template <memory_order order = memory_order::seq_cst, class T, class V>
TL_DEVICE void atomic_store(T* place, V value) {
  using code = typename bits_of<sizeof(T)>::type;
  if constexpr (releases(order)) __threadfence();
  __hip_atomic_store(reinterpret_cast<code*>(place), bit_cast<code>(cast<T>(value)),
                     __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  if constexpr (order == memory_order::seq_cst) __threadfence();
}

// Neighbours: each element is atomic by itself.
template <class T> TL_DEVICE vec<T, 2> atomic_addx2(T* place, vec<T, 2> value) {
  return {relaxed_add(place, value[0]), relaxed_add(place + 1, value[1])};
}
template <class T> TL_DEVICE vec<T, 4> atomic_addx4(T* place, vec<T, 4> value) {
  vec<T, 4> out;
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = relaxed_add(place + i, value[i]);
  return out;
}

}  // namespace tl
