// The 8-bit formats of tensor cores. Conversions round to nearest even and saturate.
#pragma once
#include <tl/minifloat.h>

namespace tl {

template <class Format>
struct float8 {
  Format format;
  float8() = default;
  explicit TL_DEVICE float8(float x) : format(Format::narrow(x)) {}
  explicit TL_DEVICE operator float() const { return format.widen(); }
};
using float8_e4m3fn = float8<minifloat<4, 3, 7, 7168, 0x7f>>;
using float8_e5m2 = float8<minifloat<5, 2, 15, 917504, 0x7f, 0x7c>>;

template <class Format>
struct small_float<float8<Format>> {
  using T = float8<Format>;
  static constexpr bool value = true;
  static TL_DEVICE float widen(T x) { return float(x); }
  static TL_DEVICE T narrow(float x) { return T(x); }
  static TL_DEVICE vec<float, 2> widen(vec<T, 2> x) { return {float(x[0]), float(x[1])}; }
  static TL_DEVICE vec<T, 2> narrow(float x, float y) { return {T(x), T(y)}; }
};

// A power of two without sign or zero: from 2^-127 to 2^127.
struct float8_e8m0fnu {
  uint8 code;
};
template <>
struct small_float<float8_e8m0fnu> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(float8_e8m0fnu x) {
    if (x.code == 255) return nan<float>();
    return __uint_as_float(x.code == 0 ? 0x00400000u : uint32(x.code) << 23);
  }
  // Between two powers the nearer one, the one with the even code from the middle.
  static TL_DEVICE float8_e8m0fnu narrow(float x) {
    if (x != x) return {255};
    const uint32 bits = __float_as_uint(x) & 0x7fffffffu, lower = bits >> 23,
                 rest = bits & 0x7fffffu;
    const bool up = rest > 0x400000u || (rest == 0x400000u && (lower & 1));
    const uint32 code = lower + (up ? 1 : 0);
    return {uint8(code > 254 ? 254 : code)};
  }
  static TL_DEVICE vec<float, 2> widen(vec<float8_e8m0fnu, 2> x) {
    return {widen(x[0]), widen(x[1])};
  }
  static TL_DEVICE vec<float8_e8m0fnu, 2> narrow(float x, float y) {
    return {narrow(x), narrow(y)};
  }
};

}  // namespace tl
