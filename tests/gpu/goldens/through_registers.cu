#include <tl/common.h>

extern "C" __global__ void __launch_bounds__(64) through_registers_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  __align__(16) float x[1];
  if (tx < 48) {
    const int i0 = tx;
    x[0] = A[i0];
  }
  if (tx < 48) {
    x[0] += 1.0f;
  }
  if (tx < 48) {
    const int i0 = tx;
    B[i0] = x[0];
  }
}
