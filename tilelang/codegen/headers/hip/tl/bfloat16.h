// bfloat16: the upper half of a float, a type of the compiler's own.
#pragma once
#include <tl/common.h>

namespace tl {

using bfloat16 = __bf16;

template <> struct small_float<bfloat16> {
  static constexpr bool value = true;
  static TL_DEVICE float widen(bfloat16 x) {
    return bit_cast<float>(uint32(bit_cast<uint16>(x)) << 16);
  }
  static TL_DEVICE bfloat16 narrow(float x) { return bfloat16(x); }
  static TL_DEVICE vec<float, 2> widen(vec<bfloat16, 2> x) { return {widen(x[0]), widen(x[1])}; }
  static TL_DEVICE vec<bfloat16, 2> narrow(float x, float y) { return {narrow(x), narrow(y)}; }
};
// Integers of more digits than a float: rounded to odd first, so as not to round twice.
template <> struct from_number<bfloat16, int> {
  static TL_DEVICE bfloat16 make(int x) { return bfloat16(rounded_to_odd(double(x))); }
};
template <> struct from_number<bfloat16, uint32> {
  static TL_DEVICE bfloat16 make(uint32 x) { return bfloat16(rounded_to_odd(double(x))); }
};

TL_DEVICE bfloat16 min(bfloat16 a, bfloat16 b) {
  return small_float<bfloat16>::narrow(
      __builtin_fminf(small_float<bfloat16>::widen(a), small_float<bfloat16>::widen(b)));
}
TL_DEVICE bfloat16 max(bfloat16 a, bfloat16 b) {
  return small_float<bfloat16>::narrow(
      __builtin_fmaxf(small_float<bfloat16>::widen(a), small_float<bfloat16>::widen(b)));
}

}  // namespace tl
