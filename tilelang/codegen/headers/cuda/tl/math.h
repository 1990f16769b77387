// Scalar functions, for float, double and the small formats (through float), and for vectors.
#pragma once
#include <tl/approximate.h>
#include <tl/common.h>

namespace tl {

template <class T> using if_small = typename enable_if<small_float<T>::value>::type;

template <class T> TL_DEVICE float widened(T x) { return small_float<T>::widen(x); }
template <class T> TL_DEVICE T narrowed(float x) { return small_float<T>::narrow(x); }

#define TL_UNARY(name, single, twice)                                             \
  TL_DEVICE float name(float x) { return single(x); }                             \
  TL_DEVICE double name(double x) { return twice(x); }                            \
  template <class T, if_small<T> = 0> TL_DEVICE T name(T x) {                     \
    return narrowed<T>(name(widened(x)));                                         \
  }                                                                               \
  template <class T, int N> TL_DEVICE vec<T, N> name(const vec<T, N>& x) {        \
    vec<T, N> out;                                                                \
    _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = name(x[i]);            \
    return out;                                                                   \
  }
#define TL_BINARY(name, single, twice)                                            \
  TL_DEVICE float name(float x, float y) { return single(x, y); }                 \
  TL_DEVICE double name(double x, double y) { return twice(x, y); }               \
  template <class T, if_small<T> = 0> TL_DEVICE T name(T x, T y) {                \
    return narrowed<T>(name(widened(x), widened(y)));                             \
  }                                                                               \
  template <class T, int N> TL_DEVICE vec<T, N> name(const vec<T, N>& x, const vec<T, N>& y) { \
    vec<T, N> out;                                                                \
    _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = name(x[i], y[i]);      \
    return out;                                                                   \
  }

TL_UNARY(exp, ::expf, ::exp)
TL_UNARY(exp2, ::exp2f, ::exp2)
TL_UNARY(exp10, ::exp10f, ::exp10)
TL_UNARY(expm1, ::expm1f, ::expm1)
TL_UNARY(log, ::logf, ::log)
TL_UNARY(log2, ::log2f, ::log2)
TL_UNARY(log10, ::log10f, ::log10)
TL_UNARY(log1p, ::log1pf, ::log1p)
TL_UNARY(sqrt, ::sqrtf, ::sqrt)
TL_UNARY(rsqrt, ::rsqrtf, ::rsqrt)
TL_UNARY(sin, ::sinf, ::sin)
TL_UNARY(cos, ::cosf, ::cos)
TL_UNARY(tan, ::tanf, ::tan)
TL_UNARY(asin, ::asinf, ::asin)
TL_UNARY(acos, ::acosf, ::acos)
TL_UNARY(atan, ::atanf, ::atan)
TL_UNARY(sinh, ::sinhf, ::sinh)
TL_UNARY(cosh, ::coshf, ::cosh)
TL_UNARY(tanh, ::tanhf, ::tanh)
TL_UNARY(asinh, ::asinhf, ::asinh)
TL_UNARY(acosh, ::acoshf, ::acosh)
TL_UNARY(atanh, ::atanhf, ::atanh)
TL_UNARY(erf, ::erff, ::erf)
TL_UNARY(erfc, ::erfcf, ::erfc)
TL_UNARY(floor, ::floorf, ::floor)
TL_UNARY(ceil, ::ceilf, ::ceil)
TL_UNARY(trunc, ::truncf, ::trunc)
TL_UNARY(nearbyint, ::rintf, ::rint)
TL_UNARY(round, ::roundf, ::round)
TL_UNARY(fabs, ::fabsf, ::fabs)
TL_BINARY(pow, ::powf, ::pow)
TL_BINARY(fmod, ::fmodf, ::fmod)
TL_BINARY(atan2, ::atan2f, ::atan2)
TL_BINARY(copysign, ::copysignf, ::copysign)
TL_BINARY(hypot, ::hypotf, ::hypot)

// Fast forms: the instruction of the special function unit.
#define TL_FAST(name, single)                                                     \
  TL_DEVICE float fast_##name(float x) { return single(x); }                      \
  TL_DEVICE double fast_##name(double x) { return name(x); }                      \
  template <class T, if_small<T> = 0> TL_DEVICE T fast_##name(T x) {              \
    return narrowed<T>(fast_##name(widened(x)));                                  \
  }                                                                               \
  template <class T, int N> TL_DEVICE vec<T, N> fast_##name(const vec<T, N>& x) { \
    vec<T, N> out;                                                                \
    _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = fast_##name(x[i]);     \
    return out;                                                                   \
  }
TL_FAST(exp, ::__expf)
TL_FAST(exp2, ex2)
TL_FAST(exp10, ::__exp10f)
TL_FAST(log, ::__logf)
TL_FAST(log2, ::__log2f)
TL_FAST(log10, ::__log10f)
TL_FAST(sin, ::__sinf)
TL_FAST(cos, ::__cosf)
TL_FAST(tan, ::__tanf)
#undef TL_FAST
#undef TL_UNARY
#undef TL_BINARY

template <class T> TL_DEVICE T sigmoid(T x) {
  if constexpr (small_float<T>::value) return narrowed<T>(sigmoid(widened(x)));
  else return T(1) / (T(1) + exp(-x));
}
template <class T, int N> TL_DEVICE vec<T, N> sigmoid(vec<T, N> x) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = sigmoid(x[i]);
  return out;
}

TL_DEVICE float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
TL_DEVICE double fma(double x, double y, double z) { return ::fma(x, y, z); }
// The product of two small floats is exact in float, so that only the sum rounds twice.
template <class T, if_small<T> = 0> TL_DEVICE T fma(T x, T y, T z) {
  return narrowed<T>(::fmaf(widened(x), widened(y), widened(z)));
}
template <class T, int N>
TL_DEVICE vec<T, N> fma(const vec<T, N>& x, const vec<T, N>& y, const vec<T, N>& z) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = fma(x[i], y[i], z[i]);
  return out;
}

TL_DEVICE float nextafter(float x, float y) { return ::nextafterf(x, y); }
TL_DEVICE double nextafter(double x, double y) { return ::nextafter(x, y); }
// The neighbour in the format itself: its codes are ordered like its values, by magnitude.
template <class T, if_small<T> = 0> TL_DEVICE T nextafter(T x, T y) {
  const float from = widened(x), to = widened(y);
  if (from != from || to != to) return narrowed<T>(nan<float>());
  if (from == to) return y;
  using code = typename chunk<sizeof(T)>::type;
  constexpr code sign = code(1) << (8 * sizeof(T) - 1);
  code bits = bit_cast<code>(x);
  if (from == 0.0f) return bit_cast<T>(code((to < 0.0f ? sign : code(0)) | code(1)));
  const bool grows = (from < to) == (from > 0.0f);
  return bit_cast<T>(code(grows ? bits + 1 : bits - 1));
}

TL_DEVICE float ldexp(float x, int power) { return ::ldexpf(x, power); }
TL_DEVICE double ldexp(double x, int power) { return ::ldexp(x, power); }
template <class T, if_small<T> = 0> TL_DEVICE T ldexp(T x, int power) {
  return narrowed<T>(::ldexpf(widened(x), power));
}

TL_DEVICE bool isnan(float x) { return x != x; }
TL_DEVICE bool isnan(double x) { return x != x; }
template <class T, if_small<T> = 0> TL_DEVICE bool isnan(T x) { return isnan(widened(x)); }

// A power with a small constant exponent, by squaring.
template <int exponent, class T> TL_DEVICE T power(T x) {
  if constexpr (exponent == 0) return cast<T>(1);
  else if constexpr (exponent == 1) return x;
  else {
    const T half = power<exponent / 2>(x);
    if constexpr (exponent % 2 == 0) return T(half * half);
    else return T(T(half * half) * x);
  }
}
template <int exponent, class T, int N> TL_DEVICE vec<T, N> power(vec<T, N> x) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = power<exponent>(x[i]);
  return out;
}

template <class T> TL_DEVICE int popcount(T x) {
  if constexpr (sizeof(T) == 8) return __popcll(uint64(x));
  else return __popc(uint32(x) & (0xffffffffu >> (32 - 8 * sizeof(T))));
}
// Leading zeros among the bits of the type.
template <class T> TL_DEVICE int clz(T x) {
  if constexpr (sizeof(T) == 8) return __clzll(int64(x));
  else return __clz(int(uint32(x) & (0xffffffffu >> (32 - 8 * sizeof(T))))) - (32 - 8 * int(sizeof(T)));
}
template <class T, class I> TL_DEVICE T bfe(T x, I start, I length) {
  return T((x >> start) & ((T(1) << length) - T(1)));
}

TL_DEVICE float to_tf32(float x) { return __uint_as_float(tf32_bits(x)); }

#if !defined(__HIP__)
// --- stated rounding ---

#define TL_ROUNDED2(name, single, twice, mode)                                                  \
  TL_DEVICE float ieee_##name##_##mode(float x, float y) { return __f##single##_##mode(x, y); } \
  TL_DEVICE double ieee_##name##_##mode(double x, double y) { return __d##twice##_##mode(x, y); }
#define TL_ROUNDED(mode)                                                                        \
  TL_ROUNDED2(add, add, add, mode)                                                              \
  TL_ROUNDED2(sub, sub, sub, mode)                                                              \
  TL_ROUNDED2(mul, mul, mul, mode)                                                              \
  TL_ROUNDED2(fdiv, div, div, mode)                                                             \
  TL_DEVICE float ieee_fmaf_##mode(float x, float y, float z) { return __fmaf_##mode(x, y, z); } \
  TL_DEVICE double ieee_fmaf_##mode(double x, double y, double z) { return __fma_##mode(x, y, z); } \
  TL_DEVICE float ieee_frcp_##mode(float x) { return __frcp_##mode(x); }                        \
  TL_DEVICE double ieee_frcp_##mode(double x) { return __drcp_##mode(x); }                      \
  TL_DEVICE float ieee_fsqrt_##mode(float x) { return __fsqrt_##mode(x); }                      \
  TL_DEVICE double ieee_fsqrt_##mode(double x) { return __dsqrt_##mode(x); }
TL_ROUNDED(rz)
TL_ROUNDED(ru)
TL_ROUNDED(rd)
#undef TL_ROUNDED
#undef TL_ROUNDED2

TL_DEVICE void dp4a(const int8* a, const int8* b, int* c) {
  const int x = bit_cast<int>(load_elements<4>(a)), y = bit_cast<int>(load_elements<4>(b));
  *c = __dp4a(x, y, *c);
}
#endif

}  // namespace tl
