// The functions of <math.h>, for compiling without ROCm's library: see `words.h`.
#pragma once

// As instructions, or few of them.
#define TL_BUILTIN1(name)                                                                       \
  static __device__ __forceinline__ float name##f(float x) { return __builtin_##name##f(x); }   \
  static __device__ __forceinline__ double name(double x) { return __builtin_##name(x); }
TL_BUILTIN1(sqrt)
TL_BUILTIN1(floor)
TL_BUILTIN1(ceil)
TL_BUILTIN1(trunc)
TL_BUILTIN1(rint)
TL_BUILTIN1(round)
TL_BUILTIN1(fabs)
#undef TL_BUILTIN1
#define TL_BUILTIN2(name)                                               \
  static __device__ __forceinline__ float name##f(float x, float y) {   \
    return __builtin_##name##f(x, y);                                   \
  }                                                                     \
  static __device__ __forceinline__ double name(double x, double y) {   \
    return __builtin_##name(x, y);                                      \
  }
TL_BUILTIN2(fmin)
TL_BUILTIN2(fmax)
TL_BUILTIN2(fmod)
TL_BUILTIN2(copysign)
#undef TL_BUILTIN2
static __device__ __forceinline__ float fmaf(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
static __device__ __forceinline__ double fma(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}
static __device__ __forceinline__ float expf(float x) { return __builtin_expf(x); }
static __device__ __forceinline__ float exp2f(float x) { return __builtin_exp2f(x); }
static __device__ __forceinline__ float exp10f(float x) { return __builtin_exp10f(x); }
static __device__ __forceinline__ float logf(float x) { return __builtin_logf(x); }
static __device__ __forceinline__ float log2f(float x) { return __builtin_log2f(x); }
static __device__ __forceinline__ float log10f(float x) { return __builtin_log10f(x); }
static __device__ __forceinline__ float ldexpf(float x, int power) {
  return __builtin_amdgcn_ldexpf(x, power);
}
static __device__ __forceinline__ double ldexp(double x, int power) {
  return __builtin_amdgcn_ldexp(x, power);
}
static __device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static __device__ __forceinline__ double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

static __device__ __forceinline__ float __expf(float x) {
  return __builtin_amdgcn_exp2f(x * 1.44269504f);
}
static __device__ __forceinline__ float __exp10f(float x) {
  return __builtin_amdgcn_exp2f(x * 3.32192809f);
}
static __device__ __forceinline__ float __log2f(float x) { return __builtin_amdgcn_logf(x); }
static __device__ __forceinline__ float __logf(float x) {
  return __builtin_amdgcn_logf(x) * 0.693147181f;
}
static __device__ __forceinline__ float __log10f(float x) {
  return __builtin_amdgcn_logf(x) * 0.301029996f;
}
// The instructions take turns, of which there is one in 2 pi.
static __device__ __forceinline__ float __sinf(float x) {
  return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0.159154943f));
}
static __device__ __forceinline__ float __cosf(float x) {
  return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0.159154943f));
}
static __device__ __forceinline__ float __tanf(float x) { return __sinf(x) / __cosf(x); }

// exp(x) - 1 and log(1 + x) keep their digits near zero: Kahan's corrections of the rounded sum.
static __device__ __forceinline__ float expm1f(float x) {
  if (__builtin_fabsf(x) < 0.35f) {
    // Taylor's series, whose next term is below a quarter of a unit in the last place.
    float sum = 1.0f / 362880.0f;
    sum = fmaf(sum, x, 1.0f / 40320.0f);
    sum = fmaf(sum, x, 1.0f / 5040.0f);
    sum = fmaf(sum, x, 1.0f / 720.0f);
    sum = fmaf(sum, x, 1.0f / 120.0f);
    sum = fmaf(sum, x, 1.0f / 24.0f);
    sum = fmaf(sum, x, 1.0f / 6.0f);
    sum = fmaf(sum, x, 0.5f);
    return fmaf(sum * x, x, x);
  }
  return expf(x) - 1.0f;
}
static __device__ __forceinline__ float log1pf(float x) {
  const float sum = 1.0f + x;
  if (sum == 1.0f) return x;
  return sum == x || !(sum > 0.0f) ? logf(sum) : logf(sum) * (x / (sum - 1.0f));
}
static __device__ __forceinline__ float tanhf(float x) {
  const float size = __builtin_fabsf(x);
  const float twice = expm1f(-2.0f * size);
  const float value = size > 10.0f ? 1.0f : -twice / (twice + 2.0f);
  return __builtin_copysignf(x != x ? x : value, x);
}

// Left to ROCm's library; the compiler of this package refuses them by name before.
#define TL_LIBRARY1(name)                          \
  extern "C" __device__ float name##f(float);      \
  extern "C" __device__ double name(double);
TL_LIBRARY1(sin)
TL_LIBRARY1(cos)
TL_LIBRARY1(tan)
TL_LIBRARY1(asin)
TL_LIBRARY1(acos)
TL_LIBRARY1(atan)
TL_LIBRARY1(sinh)
TL_LIBRARY1(cosh)
TL_LIBRARY1(asinh)
TL_LIBRARY1(acosh)
TL_LIBRARY1(atanh)
TL_LIBRARY1(erf)
TL_LIBRARY1(erfc)
#undef TL_LIBRARY1
#define TL_LIBRARY2(name)                          \
  extern "C" __device__ float name##f(float, float); \
  extern "C" __device__ double name(double, double);
TL_LIBRARY2(pow)
TL_LIBRARY2(atan2)
TL_LIBRARY2(hypot)
TL_LIBRARY2(nextafter)
#undef TL_LIBRARY2
extern "C" __device__ double exp(double);
extern "C" __device__ double exp2(double);
extern "C" __device__ double exp10(double);
extern "C" __device__ double expm1(double);
extern "C" __device__ double log(double);
extern "C" __device__ double log2(double);
extern "C" __device__ double log10(double);
extern "C" __device__ double log1p(double);
extern "C" __device__ double tanh(double);
