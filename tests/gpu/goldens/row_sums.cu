#include <tl/common.h>
#include <tl/warp.h>

extern "C" __global__ void __launch_bounds__(64) row_sums_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  __align__(16) float x[16];
  __align__(16) float total[4];
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 2 + tx / 32;
    const int i1 = tx % 32 * 4;
    tl::store(&x[r * 4], tl::load<4>(&A[i0 * 128 + i1]));
  }
  __align__(16) float total_part[4];
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] = 0.0f;
  }
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    total_part[r / 4] += x[r];
  }
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 16, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 8, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 4, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 2, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 1, 4294967295u);
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    total[r] = total_part[r];
  }
  if (tx % 32 == 0) {
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i0 = r * 2 + tx / 32;
      B[i0] = total[r];
    }
  }
}
