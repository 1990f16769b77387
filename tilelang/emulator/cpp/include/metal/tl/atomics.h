// Updates of 32-bit elements that no other thread can interrupt, with the line of the kernel.
#pragma once
#include <tl/common.h>

namespace tl {

#define TL_ATOMIC(name, expression)                                                       \
  template <class T, class V> TL_INLINE T atomic_##name(T* place, V given, TL_HERE) {     \
    const T value = cast<T>(given);                                                       \
    return metal::tl_updated<T>(reinterpret_cast<metal::tl_atomic<T>*>(place), line,      \
                                [=](T old) { return T(expression); });                    \
  }
TL_ATOMIC(add, old + value)
TL_ATOMIC(max, max(old, value))
TL_ATOMIC(min, min(old, value))
TL_ATOMIC(and, old & value)
TL_ATOMIC(or, old | value)
TL_ATOMIC(xor, old ^ value)
TL_ATOMIC(exch, value)
#undef TL_ATOMIC

template <class T, int N>
TL_INLINE vec<T, N> add_each(T* place, vec<T, N> value, int line) {
  vec<T, N> old;
  for (int i = 0; i < N; ++i) old.lanes[i] = atomic_add(place + i, value.lanes[i], line);
  return old;
}
template <class T> TL_INLINE vec<T, 2> atomic_addx2(T* place, vec<T, 2> value, TL_HERE) {
  return add_each(place, value, line);
}
template <class T> TL_INLINE vec<T, 4> atomic_addx4(T* place, vec<T, 4> value, TL_HERE) {
  return add_each(place, value, line);
}

}  // namespace tl
