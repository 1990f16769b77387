// CUDA's half precision, for the processor: IEEE binary16 in memory, float in arithmetic. A sum,
// product or quotient of two halves that was rounded to float rounds to half as if computed at
// once.
#pragma once
#include <emulator/halves.h>

TL_SMALL_FLOAT(__half, tl_half_to_float, tl_float_to_half)
using half = __half;

struct alignas(4) __half2 {
  __half x, y;
};
using half2 = __half2;

static inline float __half2float(__half x) { return float(x); }
static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __double2half(double x) { return __half(tl_odd_float(x)); }
static inline __half __int2half_rn(int x) { return __half(tl_odd_float(double(x))); }
static inline __half __uint2half_rn(unsigned x) { return __half(tl_odd_float(double(x))); }
static inline __half __ll2half_rn(long long x) { return __half(tl_odd_float(tl_odd_double(x))); }
static inline __half __ull2half_rn(unsigned long long x) {
  return __half(tl_odd_float(tl_odd_double(x)));
}
static inline float2 __half22float2(__half2 x) { return {float(x.x), float(x.y)}; }
static inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
TL_SMALL_PAIRS(__half, __half2)
TL_ATOMIC(atomicAdd, __half, unsigned short, old + value)
