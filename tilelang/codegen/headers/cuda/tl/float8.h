// The 8-bit formats of tensor cores. Conversions round to nearest even and saturate.
#pragma once
#include <cuda_fp8.h>

#include <tl/common.h>

namespace tl {

using float8_e4m3fn = __nv_fp8_e4m3;
using float8_e5m2 = __nv_fp8_e5m2;
using float8_e8m0fnu = __nv_fp8_e8m0;

template <class T, __nv_fp8_interpretation_t format> struct native_float8 {
  static constexpr bool value = true;
  static TL_DEVICE float widen(T x) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.__x, format))); }
  static TL_DEVICE T narrow(float x) {
    T out;
    out.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, format);
    return out;
  }
  static TL_DEVICE vec<float, 2> widen(vec<T, 2> x) {
    const __half2 two(__nv_cvt_fp8x2_to_halfraw2(bit_cast<__nv_fp8x2_storage_t>(x), format));
    return bit_cast<vec<float, 2>>(__half22float2(two));
  }
  static TL_DEVICE vec<T, 2> narrow(float x, float y) {
    return bit_cast<vec<T, 2>>(__nv_cvt_float2_to_fp8x2(make_float2(x, y), __NV_SATFINITE, format));
  }
};
template <> struct small_float<float8_e4m3fn> : native_float8<float8_e4m3fn, __NV_E4M3> {};
template <> struct small_float<float8_e5m2> : native_float8<float8_e5m2, __NV_E5M2> {};

// A power of two without sign or zero: from 2^-127 to 2^127, rounded to the nearest, ties to even.
template <> struct small_float<float8_e8m0fnu> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(float8_e8m0fnu x) {
    const uint32 code = x.__x;
    if (code == 255) return nan<float>();
    return __uint_as_float(code == 0 ? 0x00400000u : code << 23);
  }
  static TL_DEVICE float8_e8m0fnu narrow(float x) {
    const uint32 bits = __float_as_uint(x) & 0x7fffffffu;
    const uint32 code = (bits + ((bits >> 23) & 1) + ((1u << 22) - 1)) >> 23;
    float8_e8m0fnu out;
    out.__x = x != x ? 255 : static_cast<unsigned char>(code > 254 ? 254 : code);
    return out;
  }
  static TL_DEVICE vec<float, 2> widen(vec<float8_e8m0fnu, 2> x) { return {widen(x[0]), widen(x[1])}; }
  static TL_DEVICE vec<float8_e8m0fnu, 2> narrow(float x, float y) { return {narrow(x), narrow(y)}; }
};

}  // namespace tl
