#include <tl/common.h>
#include <tl/barrier.h>
#include <tl/warp.h>

extern "C" __global__ void __launch_bounds__(128) main_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  alignas(128) extern __shared__ unsigned char shared_memory[];
  alignas(16) float tile[10];
  alignas(16) float total[4];
  #pragma unroll
  for (int r = 0; r < 10; ++r) {
    if (r * 128 + tx < 1204) {
      const int i0 = (r * 128 + tx) / 301;
      const int i1 = (r * 128 + tx) % 301;
      tile[r] = bx * 4 + i0 < 33 ? A[(bx * 4 + i0) * 301 + i1] : 0.0f;
    }
  }
  alignas(16) float total_part[2];
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] = 0.0f;
  }
  float* tile_shared = (float*)(shared_memory);
  #pragma unroll
  for (int r = 0; r < 10; ++r) {
    if (r * 128 + tx < 1204) {
      const int i0 = (r * 128 + tx) / 301;
      const int i1 = (r * 128 + tx) % 301;
      tile_shared[i0 * 301 + i1] = tile[r];
    }
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 10; ++r) {
    if (r % 5 * 64 + tx % 64 < 301) {
      const int line = r / 5 * 2 + tx / 64;
      const int r_1 = r % 5 * 64 + tx % 64;
      total_part[r / 5] += tile_shared[line * 301 + r_1];
    }
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 32, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 16, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 8, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 4, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 2, 4294967295u);
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 1, 4294967295u);
  }
  float* total_shared = (float*)(shared_memory);
  tl::sync_threads();
  if (tx % 64 == 0) {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int line = r * 2 + tx / 64;
      total_shared[line] = total_part[r];
    }
  }
  const int i0 = 0;
  tl::sync_threads();
  tl::store(&total[0], tl::load<4>(&total_shared[i0]));
  if (tx == 0) {
    const int i0_1 = 0;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (bx * 4 + i0_1 + v < 33) {
        B[bx * 4 + i0_1 + v] = total[v];
      }
    }
  }
}
