// 8x8 matrices that the lanes of a simdgroup hold together. Which lane holds what Metal does not say,
// so elements are reached through memory only.
#pragma once
#include <metal_simdgroup_matrix>

#include <tl/common.h>

namespace tl {

template <class T> using matrix = metal::simdgroup_matrix<T, 8, 8>;

template <class T, class V> TL_INLINE void simdgroup_fill(thread matrix<T>* to, V value) {
  *to = metal::make_filled_simdgroup_matrix<T, 8, 8>(T(value));
}
// Rows begin `row` elements apart.
#define TL_MOVES(space)                                                                   \
  template <int row, class T>                                                             \
  TL_INLINE void simdgroup_load(thread matrix<T>* to, const space T* from) {              \
    metal::simdgroup_load(*to, from, ulong(row));                                         \
  }                                                                                       \
  template <int row, class T>                                                             \
  TL_INLINE void simdgroup_load_transposed(thread matrix<T>* to, const space T* from) {   \
    metal::simdgroup_load(*to, from, ulong(row), ulong2(0), true);                     \
  }                                                                                       \
  template <int row, class T>                                                             \
  TL_INLINE void simdgroup_store(space T* to, const thread matrix<T>* from) {             \
    metal::simdgroup_store(*from, to, ulong(row));                                        \
  }
TL_MEMORIES(TL_MOVES)
#undef TL_MOVES

template <class D, class A, class B>
TL_INLINE void simdgroup_multiply(thread matrix<D>* d, const thread matrix<A>* a,
                                  const thread matrix<B>* b) {
  metal::simdgroup_multiply_accumulate(*d, *a, *b, *d);
}

}  // namespace tl
