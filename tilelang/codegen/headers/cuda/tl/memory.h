// Memory accesses of a stated width, and questions about a run of elements.
#pragma once
#include <tl/common.h>

namespace tl {

template <int bits, class T> using lanes_of = vec<T, bits / 8 / int(sizeof(T))>;

template <int bits, class T> TL_DEVICE lanes_of<bits, T> ldg(const T* src) {
  return load<bits / 8 / int(sizeof(T))>(src);
}
template <int bits, class T> TL_DEVICE lanes_of<bits, T> ldg(const T* src, bool predicate) {
  lanes_of<bits, T> out = {};
  if (predicate) out = ldg<bits>(src);
  return out;
}
template <int bits, class T> TL_DEVICE void stg(T* dst, lanes_of<bits, T> value) {
  store(dst, value);
}
template <int bits, class T>
TL_DEVICE void stg(T* dst, lanes_of<bits, T> value, bool predicate) {
  if (predicate) store(dst, value);
}
template <int bits, class T> TL_DEVICE lanes_of<bits, T> lds(const T* src) {
  return load<bits / 8 / int(sizeof(T))>(src);
}
template <int bits, class T> TL_DEVICE void sts(T* dst, lanes_of<bits, T> value) {
  store(dst, value);
}

template <class T> TL_DEVICE bool any_of(const T* first, int count) {
  for (int i = 0; i < count; ++i)
    if (cast<bool>(first[i])) return true;
  return false;
}
template <class T> TL_DEVICE bool all_of(const T* first, int count) {
  for (int i = 0; i < count; ++i)
    if (!cast<bool>(first[i])) return false;
  return true;
}

}  // namespace tl
