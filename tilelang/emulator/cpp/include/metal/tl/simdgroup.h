// 8x8 matrices that the lanes of a simdgroup hold together, with the line of the kernel that asks.
#pragma once
#include <metal_simdgroup_matrix>

#include <tl/common.h>

namespace tl {

template <class T> using matrix = metal::simdgroup_matrix<T, 8, 8>;

template <class T, class V> TL_INLINE void simdgroup_fill(matrix<T>* to, V value) {
  *to = metal::make_filled_simdgroup_matrix<T, 8, 8>(T(value));
}
template <int row, class T>
TL_INLINE void simdgroup_load(matrix<T>* to, const T* from, TL_HERE) {
  metal::simdgroup_load(*to, from, ulong(row), ulong2(0), false, line);
}
template <int row, class T>
TL_INLINE void simdgroup_load_transposed(matrix<T>* to, const T* from, TL_HERE) {
  metal::simdgroup_load(*to, from, ulong(row), ulong2(0), true, line);
}
template <int row, class T>
TL_INLINE void simdgroup_store(T* to, const matrix<T>* from, TL_HERE) {
  metal::simdgroup_store(*from, to, ulong(row), ulong2(0), false, line);
}
template <class D, class A, class B>
TL_INLINE void simdgroup_multiply(matrix<D>* d, const matrix<A>* a, const matrix<B>* b, TL_HERE) {
  metal::simdgroup_multiply_accumulate(*d, *a, *b, *d, line);
}

}  // namespace tl
