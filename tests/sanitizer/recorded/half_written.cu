#include <tl/common.h>

extern "C" __global__ void __launch_bounds__(256) half_written_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  const int i = tx;
  B[i] += A[i];
}
