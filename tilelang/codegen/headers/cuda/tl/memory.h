// Memory accesses of a stated width, and questions about a run of elements.
#pragma once
#include <tl/common.h>

namespace tl {

// As many elements as `bits` hold: a vector, or one plain element.
template <int N, class T> struct run { using type = vec<T, N>; };
template <class T> struct run<1, T> { using type = T; };
template <int bits, class T> using lanes_of = typename run<bits / 8 / int(sizeof(T)), T>::type;

template <int bits, class T> TL_DEVICE lanes_of<bits, T> read(const T* src) {
  constexpr int count = bits / 8 / int(sizeof(T));
  if constexpr (count == 1) return *src;
  else return load<count>(src);
}
template <int bits, class T> TL_DEVICE void write(T* dst, lanes_of<bits, T> value) {
  if constexpr (bits / 8 == int(sizeof(T))) *dst = value;
  else store(dst, value);
}

template <int bits, class T> TL_DEVICE lanes_of<bits, T> ldg(const T* src) { return read<bits>(src); }
template <int bits, class T> TL_DEVICE lanes_of<bits, T> ldg(const T* src, bool predicate) {
  lanes_of<bits, T> out = {};
  if (predicate) out = read<bits>(src);
  return out;
}
template <int bits, class T> TL_DEVICE void stg(T* dst, lanes_of<bits, T> value) {
  write<bits>(dst, value);
}
template <int bits, class T>
TL_DEVICE void stg(T* dst, lanes_of<bits, T> value, bool predicate) {
  if (predicate) write<bits>(dst, value);
}
template <int bits, class T> TL_DEVICE lanes_of<bits, T> lds(const T* src) { return read<bits>(src); }
template <int bits, class T> TL_DEVICE void sts(T* dst, lanes_of<bits, T> value) {
  write<bits>(dst, value);
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
