// float16: IEEE half precision, a type of the compiler's own.
#pragma once
#include <tl/common.h>

namespace tl {

using float16 = _Float16;

template <> struct small_float<float16> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(float16 x) { return float(x); }
  static TL_DEVICE float16 narrow(float x) { return float16(x); }
  static TL_DEVICE vec<float, 2> widen(vec<float16, 2> x) { return {float(x[0]), float(x[1])}; }
  static TL_DEVICE vec<float16, 2> narrow(float x, float y) { return {float16(x), float16(y)}; }
};
template <> struct from_number<float16, double> {
  static TL_DEVICE float16 make(double x) { return float16(x); }
};
// By way of double, which holds every number that is not beyond the format anyhow.
template <> struct from_number<float16, int> {
  static TL_DEVICE float16 make(int x) { return float16(double(x)); }
};
template <> struct from_number<float16, uint32> {
  static TL_DEVICE float16 make(uint32 x) { return float16(double(x)); }
};
template <> struct from_number<float16, int64> {
  static TL_DEVICE float16 make(int64 x) { return float16(double(x)); }
};
template <> struct from_number<float16, uint64> {
  static TL_DEVICE float16 make(uint64 x) { return float16(double(x)); }
};

TL_DEVICE float16 min(float16 a, float16 b) { return __builtin_fminf16(a, b); }
TL_DEVICE float16 max(float16 a, float16 b) { return __builtin_fmaxf16(a, b); }

}  // namespace tl
