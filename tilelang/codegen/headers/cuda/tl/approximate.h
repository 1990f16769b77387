// Instructions of the special function unit that CUDA has no function for.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE float ex2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
TL_DEVICE uint32 tf32_bits(float x) {
  uint32 out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}

}  // namespace tl
