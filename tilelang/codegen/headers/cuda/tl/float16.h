// float16: IEEE half precision.
#pragma once
#include <cuda_fp16.h>

#include <tl/common.h>

namespace tl {

using float16 = __half;

template <> struct small_float<float16> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(float16 x) { return __half2float(x); }
  static TL_DEVICE float16 narrow(float x) { return __float2half_rn(x); }
  static TL_DEVICE vec<float, 2> widen(vec<float16, 2> x) {
    return bit_cast<vec<float, 2>>(__half22float2(bit_cast<__half2>(x)));
  }
  static TL_DEVICE vec<float16, 2> narrow(float x, float y) {
    return bit_cast<vec<float16, 2>>(__floats2half2_rn(x, y));
  }
};
template <> struct from_number<float16, double> {
  static TL_DEVICE float16 make(double x) { return __double2half(x); }
};
template <> struct from_number<float16, int> {
  static TL_DEVICE float16 make(int x) { return __int2half_rn(x); }
};
template <> struct from_number<float16, uint32> {
  static TL_DEVICE float16 make(uint32 x) { return __uint2half_rn(x); }
};
template <> struct from_number<float16, int64> {
  static TL_DEVICE float16 make(int64 x) { return __ll2half_rn(x); }
};
template <> struct from_number<float16, uint64> {
  static TL_DEVICE float16 make(uint64 x) { return __ull2half_rn(x); }
};

TL_DEVICE float16 min(float16 a, float16 b) { return __hmin(a, b); }
TL_DEVICE float16 max(float16 a, float16 b) { return __hmax(a, b); }

template <> struct pairs<float16> {
  static constexpr bool exist = true;
  using type = __half2;
  static TL_DEVICE type add(type a, type b) { return __hadd2(a, b); }
  static TL_DEVICE type sub(type a, type b) { return __hsub2(a, b); }
  static TL_DEVICE type mul(type a, type b) { return __hmul2(a, b); }
};

}  // namespace tl
