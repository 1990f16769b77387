#include <tl/common.h>
#include <tl/debug.h>
#include <tl/math.h>

extern "C" __global__ void __launch_bounds__(256) negative_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  const int i = tx;
  tl::device_assert(A[i] >= -100.0f, "an input below -100", "planted.py", 49);
  B[i] = tl::sqrt(A[i] + 100.0f);
}
