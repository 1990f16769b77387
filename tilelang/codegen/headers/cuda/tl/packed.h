// Elements of less than a byte, the first in the lowest bits.
#pragma once
#include <tl/common.h>
#include <tl/minifloat.h>

namespace tl {

template <int width, class T> struct packed {
  static constexpr int bits = width, per_byte = 8 / width;
  using value = T;
};
using packed_int4 = packed<4, int8>;
using packed_uint4 = packed<4, uint8>;
using packed_uint2 = packed<2, uint8>;
using packed_uint1 = packed<1, uint8>;
using packed_float4_e2m1fn = packed<4, float4_e2m1fn>;

template <class P, class I> TL_DEVICE typename P::value load_packed(const uint8* storage, I index) {
  const uint8 code = uint8(storage[index / P::per_byte] >> (int(index % P::per_byte) * P::bits));
  if constexpr (is_same<typename P::value, float4_e2m1fn>::value) {
    return {uint8(code & 15)};
  } else {
    return wrap<P::bits>(typename P::value(code));
  }
}

template <class P> TL_DEVICE uint32 packed_code(typename P::value value) {
  constexpr uint32 mask = (1u << P::bits) - 1;
  if constexpr (is_same<typename P::value, float4_e2m1fn>::value) return value.code & mask;
  else return uint32(value) & mask;
}

// In a thread's own array: reads and writes the whole byte.
template <class P, class I>
TL_DEVICE void store_packed(uint8* storage, I index, typename P::value value) {
  const int shift = int(index % P::per_byte) * P::bits, mask = (1 << P::bits) - 1;
  uint8& byte = storage[index / P::per_byte];
  byte = uint8((byte & ~(mask << shift)) | (packed_code<P>(value) << shift));
}

// In memory that others write too: touches no bit but the element's own.
template <class P, class I>
TL_DEVICE void store_packed_among(uint8* storage, I index, typename P::value value) {
  constexpr uint32 mask = (1u << P::bits) - 1;
  const uint64 place = reinterpret_cast<uint64>(storage + index / P::per_byte);
  uint32* word = reinterpret_cast<uint32*>(place & ~uint64(3));
  const int shift = int(place & 3) * 8 + int(index % P::per_byte) * P::bits;
  const uint32 code = packed_code<P>(value);
  atomicAnd(word, ~((mask & ~code) << shift));
  atomicOr(word, code << shift);
}

}  // namespace tl
