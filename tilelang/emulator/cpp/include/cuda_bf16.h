// CUDA's bfloat16, for the processor: the upper half of a float in memory, float in arithmetic.
#pragma once
#include <emulator/halves.h>

TL_SMALL_FLOAT(__nv_bfloat16, tl_bfloat_to_float, tl_float_to_bfloat)

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 x) { return float(x); }
static inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(tl_odd_float(x)); }
static inline __nv_bfloat16 __int2bfloat16_rn(int x) {
  return __nv_bfloat16(tl_odd_float(double(x)));
}
static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned x) {
  return __nv_bfloat16(tl_odd_float(double(x)));
}
static inline __nv_bfloat16 __ll2bfloat16_rn(long long x) {
  return __nv_bfloat16(tl_odd_float(tl_odd_double(x)));
}
static inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) {
  return __nv_bfloat16(tl_odd_float(tl_odd_double(x)));
}
static inline float2 __bfloat1622float2(__nv_bfloat162 x) { return {float(x.x), float(x.y)}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
TL_SMALL_PAIRS(__nv_bfloat16, __nv_bfloat162)
TL_ATOMIC(atomicAdd, __nv_bfloat16, unsigned short, old + value)
