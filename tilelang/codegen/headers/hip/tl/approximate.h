// Instructions of the special function unit that HIP has no function for.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE float ex2(float x) { return __builtin_amdgcn_exp2f(x); }
// The nearest tf32 value, ties away from zero.
TL_DEVICE uint32 tf32_bits(float x) {
  const uint32 bits = bit_cast<uint32>(x);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return finite ? (bits + 0x1000u) & 0xffffe000u : bits;
}

}  // namespace tl
