// The 8-bit formats, which these processors convert in software: rounded to nearest even, saturating.
#pragma once
#include <tl/common.h>
#include <tl/minifloat.h>

namespace tl {

using float8_e4m3fn = minifloat<4, 3, 7, 7168, 0x7f>;
using float8_e5m2 = minifloat<5, 2, 15, 917504, 0x7f, 0x7c>;

// A power of two without sign or zero: from 2^-127 to 2^127, rounded to the nearest, ties to even.
struct float8_e8m0fnu { uint8 code; };
template <> struct small_float<float8_e8m0fnu> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(float8_e8m0fnu x) {
    if (x.code == 255) return nan<float>();
    return bit_cast<float>(x.code == 0 ? 0x00400000u : uint32(x.code) << 23);
  }
  static TL_DEVICE float8_e8m0fnu narrow(float x) {
    const uint32 bits = bit_cast<uint32>(x) & 0x7fffffffu;
    const uint32 code = (bits + ((bits >> 23) & 1) + ((1u << 22) - 1)) >> 23;
    return {uint8(x != x ? 255u : code > 254u ? 254u : code)};
  }
  static TL_DEVICE vec<float, 2> widen(vec<float8_e8m0fnu, 2> x) {
    return {widen(x[0]), widen(x[1])};
  }
  static TL_DEVICE vec<float8_e8m0fnu, 2> narrow(float x, float y) {
    return {narrow(x), narrow(y)};
  }
};

}  // namespace tl
