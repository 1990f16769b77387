// Scalar functions: the common header, in the words of HIP.
#pragma once
#include_next <tl/math.h>

namespace tl {

TL_DEVICE void dp4a(const int8* a, const int8* b, int* c) {
  int sum = *c;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum += int(a[i]) * int(b[i]);
  *c = sum;
}

}  // namespace tl
