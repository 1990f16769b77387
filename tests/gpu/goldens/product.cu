#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>
#include <tl/mma.h>

extern "C" __global__ void __launch_bounds__(128) product_kernel(const tl::float16* __restrict__ A, const tl::float16* __restrict__ B, float* __restrict__ C) {
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  tl::float16* A_s = (tl::float16*)(shared_memory);
  tl::float16* B_s = (tl::float16*)(shared_memory + 4096);
  __align__(16) float C_l[32];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i0 = r * 32 + tx / 4;
    const int i1 = tx % 4 * 8;
    tl::store(&A_s[((r * 32 + tx / 4) * 4 + ((tx % 4) ^ (tx / 8 % 4))) * 8], tl::load<8>(&A[i0 * 32 + i1]));
  }
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i0 = r * 32 + tx / 4;
    const int i1 = tx % 4 * 8;
    tl::store(&B_s[((r * 32 + tx / 4) * 4 + ((tx % 4) ^ (tx / 8 % 4))) * 8], tl::load<8>(&B[i0 * 32 + i1]));
  }
  #pragma unroll
  for (int r = 0; r < 32; ++r) {
    C_l[r] = 0.0f;
  }
  __align__(16) tl::float16 A_s_r[16];
  __align__(16) tl::float16 B_s_r[16];
  tl::sync_threads();
  #pragma unroll
  for (int k = 0; k < 2; ++k) {
    #pragma unroll
    for (int block = 0; block < 2; ++block) {
      tl::ldmatrix_x4(&A_s_r[block * 8], tl::at(A_s, ((tx / 32 % 2 * 32 + block * 16 + tx / 8 % 2 * 8 + tx % 8) * 4 + ((k * 2 + tx / 16 % 2) ^ (tx / 2 % 4))) * 8));
    }
    #pragma unroll
    for (int block = 0; block < 2; ++block) {
      tl::ldmatrix_x4(&B_s_r[block * 8], tl::at(B_s, ((tx / 64 * 32 + block * 16 + tx / 16 % 2 * 8 + tx % 8) * 4 + ((k * 2 + tx / 8 % 2) ^ (tx / 2 % 4))) * 8));
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        tl::mma_m16n8k16_f32_f16_f16(&C_l[i * 16 + j * 4], &A_s_r[i * 8], &B_s_r[j * 4]);
      }
    }
  }
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    const int i0 = tx / 32 % 2 * 32 + r / 8 * 16 + r % 2 * 8 + tx / 4 % 8;
    const int i1 = tx / 64 * 32 + r / 2 % 4 * 8 + tx % 4 * 2;
    tl::store(&C[i0 * 64 + i1], tl::load<2>(&C_l[r * 2]));
  }
}
