// Small floating-point formats without instructions of their own, converted through float:
// rounded to nearest even, saturating at the largest finite value.
#pragma once
#include <tl/common.h>

namespace tl {

// `largest` is the largest finite value, times 16; `nan_code` and `infinity_code` are -1 where the
// format has none. A nan_code with the sign bit set means that there is no negative zero.
template <int exponent, int mantissa, int bias, int largest, int nan_code, int infinity_code = -1>
struct minifloat {
  uint8 code;

  static constexpr int sign_at = exponent + mantissa;
  static constexpr bool one_zero = nan_code == (1 << sign_at);

  TL_DEVICE float widen() const {
    const uint32 magnitude = code & ((1u << sign_at) - 1), sign = uint32(code) >> sign_at;
    // Placed under the exponent field of float the code reads as value * 2^(bias - 127),
    // denormals included; one exact multiplication puts that right.
    const float scale = __uint_as_float(uint32(254 - bias) << 23);
    float value = __uint_as_float(magnitude << (23 - mantissa)) * scale;
    if constexpr (infinity_code >= 0) {
      if (int(magnitude) >= infinity_code)
        value = int(magnitude) == infinity_code ? infinity<float>() : nan<float>();
    } else if constexpr (nan_code >= 0) {
      if (int(one_zero ? code : magnitude) == nan_code) return nan<float>();
    }
    return __uint_as_float(__float_as_uint(value) | (sign << 31));
  }

  static TL_DEVICE minifloat narrow(float x) {
    const float top = largest / 16.0f;
    const float magnitude = ::fminf(::fabsf(x), top);
    const uint32 bits = __float_as_uint(magnitude);
    const uint32 last = (bits >> (23 - mantissa)) & 1;
    const uint32 rounded = (bits + last + (1u << (22 - mantissa)) - 1) >> (23 - mantissa);
    uint32 result = rounded - (uint32(127 - bias) << mantissa);
    // Below the smallest normal number the codes count quanta.
    const float smallest = __uint_as_float(uint32(128 - bias) << 23);
    const float quanta = __uint_as_float(uint32(126 + bias + mantissa) << 23);
    if (magnitude < smallest) result = __float2uint_rn(magnitude * quanta);
    const uint32 sign = __float_as_uint(x) >> 31;
    if (!one_zero || result != 0) result |= sign << sign_at;
    if constexpr (nan_code >= 0) {
      if (x != x) result = nan_code;
    }
    return {uint8(result)};
  }
};

using float8_e3m4 = minifloat<3, 4, 3, 248, 0x7f, 0x70>;
using float8_e4m3fnuz = minifloat<4, 3, 8, 3840, 0x80>;
using float8_e4m3b11fnuz = minifloat<4, 3, 11, 480, 0x80>;
using float8_e5m2fnuz = minifloat<5, 2, 16, 917504, 0x80>;
using float6_e2m3fn = minifloat<2, 3, 1, 120, -1>;
using float6_e3m2fn = minifloat<3, 2, 3, 448, -1>;
using float4_e2m1fn = minifloat<2, 1, 1, 96, -1>;
using float4_e2m1_unpacked = float4_e2m1fn;

template <int e, int m, int bias, int largest, int n, int i>
struct small_float<minifloat<e, m, bias, largest, n, i>> {
  using T = minifloat<e, m, bias, largest, n, i>;
  static constexpr bool value = true;
  static TL_DEVICE float widen(T x) { return x.widen(); }
  static TL_DEVICE T narrow(float x) { return T::narrow(x); }
  static TL_DEVICE vec<float, 2> widen(vec<T, 2> x) { return {x[0].widen(), x[1].widen()}; }
  static TL_DEVICE vec<T, 2> narrow(float x, float y) { return {T::narrow(x), T::narrow(y)}; }
};

}  // namespace tl
