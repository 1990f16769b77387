// Scalar functions: of float as exact as Metal has them, of the small formats through float.
#pragma once
#include <tl/common.h>

namespace tl {

template <class T>
using if_small = typename enable_if<is_same<T, half>::value || is_same<T, bfloat>::value>::type;

#define TL_UNARY(name, function)                                                  \
  TL_INLINE float name(float x) { return function(x); }                           \
  template <class T, if_small<T> = 0> TL_INLINE T name(T x) { return T(name(float(x))); }
#define TL_BINARY(name, function)                                                 \
  TL_INLINE float name(float x, float y) { return function(x, y); }               \
  template <class T, if_small<T> = 0> TL_INLINE T name(T x, T y) {                \
    return T(name(float(x), float(y)));                                           \
  }

TL_UNARY(exp, metal::precise::exp)
TL_UNARY(exp2, metal::precise::exp2)
TL_UNARY(exp10, metal::precise::exp10)
TL_UNARY(log, metal::precise::log)
TL_UNARY(log2, metal::precise::log2)
TL_UNARY(log10, metal::precise::log10)
TL_UNARY(sqrt, metal::precise::sqrt)
TL_UNARY(rsqrt, metal::precise::rsqrt)
TL_UNARY(sin, metal::precise::sin)
TL_UNARY(cos, metal::precise::cos)
TL_UNARY(tan, metal::precise::tan)
TL_UNARY(asin, metal::precise::asin)
TL_UNARY(acos, metal::precise::acos)
TL_UNARY(atan, metal::precise::atan)
TL_UNARY(sinh, metal::precise::sinh)
TL_UNARY(cosh, metal::precise::cosh)
TL_UNARY(tanh, metal::precise::tanh)
TL_UNARY(asinh, metal::precise::asinh)
TL_UNARY(acosh, metal::precise::acosh)
TL_UNARY(atanh, metal::precise::atanh)
TL_UNARY(floor, metal::floor)
TL_UNARY(ceil, metal::ceil)
TL_UNARY(trunc, metal::trunc)
TL_UNARY(nearbyint, metal::rint)
TL_UNARY(round, metal::round)
TL_UNARY(fabs, metal::fabs)
TL_BINARY(pow, metal::precise::pow)
TL_BINARY(fmod, metal::precise::fmod)
TL_BINARY(atan2, metal::precise::atan2)
TL_BINARY(copysign, metal::copysign)

TL_UNARY(fast_exp, metal::fast::exp)
TL_UNARY(fast_exp2, metal::fast::exp2)
TL_UNARY(fast_exp10, metal::fast::exp10)
TL_UNARY(fast_log, metal::fast::log)
TL_UNARY(fast_log2, metal::fast::log2)
TL_UNARY(fast_log10, metal::fast::log10)
TL_UNARY(fast_sin, metal::fast::sin)
TL_UNARY(fast_cos, metal::fast::cos)
TL_UNARY(fast_tan, metal::fast::tan)

// Metal has none. The series of erf near 0; elsewhere formula 7.1.26 of Abramowitz and Stegun, which
// is off by 1.5e-7 at most.
TL_INLINE float erf_of(float x) {
  const float y = metal::fabs(x);
  if (y < 0.5f) {
    const float s = x * x;
    const float series = 1.0f - s * (1.0f / 3 - s * (0.1f - s * (1.0f / 42 - s * (1.0f / 216 -
                         s * (1.0f / 1320 - s / 9360)))));
    return 1.12837917f * x * series;
  }
  const float t = 1.0f / (1.0f + 0.3275911f * y);
  const float sum = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f +
                    t * (-1.453152027f + t * 1.061405429f))));
  return metal::copysign(1.0f - sum * metal::precise::exp(-y * y), x);
}
TL_UNARY(erf, erf_of)
#undef TL_UNARY
#undef TL_BINARY

template <class T> TL_INLINE T sigmoid(T x) { return T(1.0f / (1.0f + exp(-float(x)))); }
TL_INLINE float fma(float x, float y, float z) { return metal::fma(x, y, z); }
template <class T, if_small<T> = 0> TL_INLINE T fma(T x, T y, T z) {
  return T(metal::fma(float(x), float(y), float(z)));
}
template <class T> TL_INLINE T ldexp(T x, int power) { return T(metal::ldexp(float(x), power)); }
template <class T> TL_INLINE bool isnan(T x) { return x != x; }

// A power with a small constant exponent, by squaring.
template <int exponent, class T> struct power_of {
  static TL_INLINE T make(T x) {
    const T part = power_of<exponent / 2, T>::make(x);
    return exponent % 2 == 0 ? T(part * part) : T(T(part * part) * x);
  }
};
template <class T> struct power_of<0, T> {
  static TL_INLINE T make(T) { return T(1); }
};
template <class T> struct power_of<1, T> {
  static TL_INLINE T make(T x) { return x; }
};
template <int exponent, class T> TL_INLINE T power(T x) { return power_of<exponent, T>::make(x); }

template <class T> TL_INLINE int popcount(T x) { return int(metal::popcount(x)); }
template <class T> TL_INLINE int clz(T x) { return int(metal::clz(x)); }

}  // namespace tl
