// What the device header writes as one instruction of the special function unit.
#pragma once
#include <tl/common.h>

namespace tl {

// ex2.approx.ftz.f32: denormals count as zero on both sides.
TL_DEVICE float ex2(float x) {
  const float y = ::exp2f(x);
  return ::fabsf(y) < 0x1p-126f ? 0.0f : y;
}
// cvt.rna.tf32.f32: to 10 bits of mantissa, ties away from zero.
TL_DEVICE uint32 tf32_bits(float x) {
  const uint32 bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}

}  // namespace tl
