#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>
#include <tl/math.h>
#include <tl/warp.h>

extern "C" __global__ void __launch_bounds__(128) main_kernel(const tl::float16* __restrict__ A, tl::float16* __restrict__ B) {
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  alignas(128) extern __shared__ unsigned char shared_memory[];
  alignas(16) float x[16];
  alignas(16) float most[1];
  alignas(16) float total[1];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (r * 1024 + tx * 8 < 1600) {
      const int i0 = (r * 128 + tx) / 25;
      const int i1 = (r * 1024 + tx * 8) % 200;
      #pragma unroll
      for (int v = 0; v < 8; ++v) {
        x[r * 8 + v] = float(bx * 8 + i0 < 37 ? A[(bx * 8 + i0) * 200 + i1 + v] : tl::float16(0.0f));
      }
    }
  }
  alignas(16) float most_part[2];
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = -tl::infinity<float>();
  }
  float* x_shared = (float*)(shared_memory);
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (r / 2 * 1024 + tx * 8 + r % 2 * 4 < 1600) {
      const int i0 = (r / 2 * 128 + tx) / 25;
      const int i1 = (r / 2 * 1024 + tx * 8 + r % 2 * 4) % 200;
      tl::store(&x_shared[i0 * 200 + i1], tl::load<4>(&x[r * 4]));
    }
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 14; ++r) {
    if (r % 7 * 32 + tx % 32 < 200) {
      const int line = r / 7 * 4 + tx / 32;
      const int r_1 = r % 7 * 32 + tx % 32;
      most_part[r / 7] = tl::max(most_part[r / 7], x_shared[line * 200 + r_1]);
    }
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = tl::max(most_part[slot], tl::shfl_xor(most_part[slot], 16, 4294967295u));
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = tl::max(most_part[slot], tl::shfl_xor(most_part[slot], 8, 4294967295u));
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = tl::max(most_part[slot], tl::shfl_xor(most_part[slot], 4, 4294967295u));
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = tl::max(most_part[slot], tl::shfl_xor(most_part[slot], 2, 4294967295u));
  }
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    most_part[slot] = tl::max(most_part[slot], tl::shfl_xor(most_part[slot], 1, 4294967295u));
  }
  float* most_shared = (float*)(shared_memory);
  tl::sync_threads();
  if (tx % 32 == 0) {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int line = r * 4 + tx / 32;
      most_shared[line] = most_part[r];
    }
  }
  tl::sync_threads();
  if (tx < 8) {
    const int i0 = tx;
    most[0] = most_shared[i0];
  }
  float* most_shared_1 = (float*)(shared_memory);
  if (tx < 8) {
    const int i0 = tx;
    most_shared_1[i0] = most[0];
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    if (r / 8 * 1024 + tx * 8 + r % 8 < 1600) {
      const int i = (r / 8 * 128 + tx) / 25;
      x[r] = tl::exp(x[r] - most_shared_1[i]);
    }
  }
  alignas(16) float total_part[2];
  #pragma unroll
  for (int slot = 0; slot < 2; ++slot) {
    total_part[slot] = 0.0f;
  }
  float* x_shared_1 = (float*)(shared_memory);
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (r / 2 * 1024 + tx * 8 + r % 2 * 4 < 1600) {
      const int i0 = (r / 2 * 128 + tx) / 25;
      const int i1 = (r / 2 * 1024 + tx * 8 + r % 2 * 4) % 200;
      tl::store(&x_shared_1[i0 * 200 + i1], tl::load<4>(&x[r * 4]));
    }
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 14; ++r) {
    if (r % 7 * 32 + tx % 32 < 200) {
      const int line = r / 7 * 4 + tx / 32;
      const int r_1 = r % 7 * 32 + tx % 32;
      total_part[r / 7] += x_shared_1[line * 200 + r_1];
    }
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
  if (tx % 32 == 0) {
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int line = r * 4 + tx / 32;
      total_shared[line] = total_part[r];
    }
  }
  tl::sync_threads();
  if (tx < 8) {
    const int i0 = tx;
    total[0] = total_shared[i0];
  }
  float* total_shared_1 = (float*)(shared_memory);
  if (tx < 8) {
    const int i0 = tx;
    total_shared_1[i0] = total[0];
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    if (r / 8 * 1024 + tx * 8 + r % 8 < 1600) {
      const int i_1 = (r / 8 * 128 + tx) / 25;
      x[r] = x[r] / total_shared_1[i_1];
    }
  }
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (r * 1024 + tx * 8 < 1600) {
      const int i0 = (r * 128 + tx) / 25;
      const int i1 = (r * 1024 + tx * 8) % 200;
      if (bx * 8 + i0 < 37) {
        tl::store(&B[(bx * 8 + i0) * 200 + i1], tl::cast<tl::float16>(tl::load<8>(&x[r * 8])));
      }
    }
  }
}
