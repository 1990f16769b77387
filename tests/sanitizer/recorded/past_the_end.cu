#include <tl/common.h>

extern "C" __global__ void __launch_bounds__(256) past_the_end_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  const int i = tx;
  B[bx * 256 + i] = bx * 256 + i < 1000 ? A[bx * 256 + i] : 0.0f;
}
