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

// Reads and writes the whole byte.
template <class P, class I>
TL_DEVICE void store_packed(uint8* storage, I index, typename P::value value) {
  const int shift = int(index % P::per_byte) * P::bits, mask = (1 << P::bits) - 1;
  int code;
  if constexpr (is_same<typename P::value, float4_e2m1fn>::value) code = value.code;
  else code = value;
  uint8& byte = storage[index / P::per_byte];
  byte = uint8((byte & ~(mask << shift)) | ((code & mask) << shift));
}

}  // namespace tl
