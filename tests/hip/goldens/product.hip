#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>
#include <tl/mfma.h>

extern "C" __global__ void __launch_bounds__(256) main_kernel(const tl::float16* __restrict__ A, const tl::float16* __restrict__ B, float* __restrict__ C) {
  const int by = int(blockIdx.y);
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  alignas(128) extern __shared__ unsigned char shared_memory[];
  tl::float16* a = (tl::float16*)(shared_memory);
  tl::float16* b = (tl::float16*)(shared_memory + 4096);
  alignas(16) float c[16];
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    c[r] = 0.0f;
  }
  for (int k = 0; k < 3; ++k) {
    tl::sync_threads();
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i0 = r * 16 + tx / 16;
      const int i1 = tx % 16 * 2;
      tl::store(&a[((r * 16 + tx / 16) * 16 + ((tx % 16) ^ (tx / 32 * 2))) * 2], by * 64 + i0 < 100 && k * 32 + tx % 16 * 2 < 70 ? tl::load<2>(&A[(by * 64 + i0) * 70 + k * 32 + i1]) : tl::broadcast<2>(tl::float16(0.0f)));
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i0 = r * 8 + tx / 32;
      const int i1 = tx % 32 * 2;
      tl::store(&b[i0 * 64 + i1], k * 32 + i0 < 70 && bx * 64 + tx % 32 * 2 < 90 ? tl::load<2>(&B[(k * 32 + i0) * 90 + bx * 64 + i1]) : tl::broadcast<2>(tl::float16(0.0f)));
    }
    alignas(16) tl::float16 a_r[4];
    alignas(16) tl::float16 b_r[4];
    tl::sync_threads();
    #pragma unroll
    for (int k_1 = 0; k_1 < 4; ++k_1) {
      tl::store(&a_r[0], tl::load<4>(&a[((tx / 64 % 2 * 32 + tx % 32) * 8 + ((k_1 * 2 + tx / 32 % 2) ^ (tx / 2 % 8))) * 4]));
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        b_r[v] = b[(k_1 * 8 + tx / 32 % 2 * 4 + v) * 64 + tx / 128 * 32 + tx % 32];
      }
      tl::mfma_m32n32k8_f32_f16_f16(&c[0], &a_r[0], &b_r[0]);
    }
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = tx / 64 % 2 * 32 + tx % 32;
    const int i1 = tx / 128 * 32 + r * 8 + tx / 32 % 2 * 4;
    #pragma unroll
    for (int v_outer = 0; v_outer < 2; ++v_outer) {
      if (by * 64 + i0 < 100 && bx * 64 + tx / 128 * 32 + r * 8 + tx % 64 / 32 * 4 + v_outer * 2 < 90) {
        tl::store(&C[(by * 64 + i0) * 90 + bx * 64 + i1 + v_outer * 2], tl::load<2>(&c[r * 4 + v_outer * 2]));
      }
    }
  }
}
