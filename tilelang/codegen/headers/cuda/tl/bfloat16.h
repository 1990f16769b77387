// bfloat16: the upper half of a float.
#pragma once
#include <cuda_bf16.h>

#include <tl/common.h>

namespace tl {

using bfloat16 = __nv_bfloat16;

template <> struct small_float<bfloat16> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(bfloat16 x) { return __bfloat162float(x); }
  static TL_DEVICE bfloat16 narrow(float x) { return __float2bfloat16_rn(x); }
  static TL_DEVICE vec<float, 2> widen(vec<bfloat16, 2> x) {
    return bit_cast<vec<float, 2>>(__bfloat1622float2(bit_cast<__nv_bfloat162>(x)));
  }
  static TL_DEVICE vec<bfloat16, 2> narrow(float x, float y) {
    return bit_cast<vec<bfloat16, 2>>(__floats2bfloat162_rn(x, y));
  }
};
template <> struct from_number<bfloat16, double> {
  static TL_DEVICE bfloat16 make(double x) { return __double2bfloat16(x); }
};
template <> struct from_number<bfloat16, int> {
  static TL_DEVICE bfloat16 make(int x) { return __int2bfloat16_rn(x); }
};
template <> struct from_number<bfloat16, uint32> {
  static TL_DEVICE bfloat16 make(uint32 x) { return __uint2bfloat16_rn(x); }
};
template <> struct from_number<bfloat16, int64> {
  static TL_DEVICE bfloat16 make(int64 x) { return __ll2bfloat16_rn(x); }
};
template <> struct from_number<bfloat16, uint64> {
  static TL_DEVICE bfloat16 make(uint64 x) { return __ull2bfloat16_rn(x); }
};

TL_DEVICE bfloat16 min(bfloat16 a, bfloat16 b) { return __hmin(a, b); }
TL_DEVICE bfloat16 max(bfloat16 a, bfloat16 b) { return __hmax(a, b); }

template <> struct pairs<bfloat16> {
  static constexpr bool exist = true;
  using type = __nv_bfloat162;
  static TL_DEVICE type add(type a, type b) { return __hadd2(a, b); }
  static TL_DEVICE type sub(type a, type b) { return __hsub2(a, b); }
  static TL_DEVICE type mul(type a, type b) { return __hmul2(a, b); }
};

}  // namespace tl
