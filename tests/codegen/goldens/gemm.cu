#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>
#include <tl/copy_async.h>
#include <tl/mma.h>

extern "C" __global__ void __launch_bounds__(128) main_kernel(const tl::float16* __restrict__ A, const tl::float16* __restrict__ B, float* __restrict__ C) {
  const int by = int(blockIdx.y);
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  tl::float16* A_shared = (tl::float16*)(shared_memory);
  tl::float16* B_shared = (tl::float16*)(shared_memory + 24576);
  __align__(16) tl::float16 A_local[32];
  __align__(16) tl::float16 B_local[32];
  __align__(16) float C_local[128];
  #pragma unroll
  for (int i = 0; i < 128; ++i) {
    C_local[i] = 0.0f;
  }
  #pragma unroll
  for (int s = 0; s < 2; ++s) {
    #pragma unroll
    for (int i_1 = 0; i_1 < 4; ++i_1) {
      const int id = i_1 * 128 + tx;
      const int row = id / 4;
      const int to = s * 4096 + row * 32 + ((id % 4) ^ (row / 2 % 4)) * 8;
      tl::cp_async<16>(tl::at(A_shared, to), &A[(by * 128 + row) * 128 + s * 32 + id % 4 * 8]);
      const int id_1 = i_1 * 128 + tx;
      const int row_1 = id_1 / 16;
      const int to_1 = s * 4096 + row_1 * 128 + ((id_1 % 16) ^ (row_1 % 8)) * 8;
      tl::cp_async<16>(tl::at(B_shared, to_1), &B[(s * 32 + row_1) * 256 + bx * 128 + id_1 % 16 * 8]);
    }
    tl::cp_async_commit();
  }
  for (int k = 0; k < 4; ++k) {
    tl::cp_async_wait<1>();
    tl::sync_threads();
    #pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      #pragma unroll
      for (int mi = 0; mi < 4; ++mi) {
        const int row_2 = tx / 64 * 64 + mi * 16 + tx % 16;
        const int chunk = (kk * 2 + tx % 32 / 16) ^ (row_2 / 2 % 4);
        const int a = k % 3 * 4096 + row_2 * 32 + chunk * 8;
        tl::ldmatrix_x4(&A_local[mi * 8], tl::at(A_shared, a));
      }
      #pragma unroll
      for (int ni = 0; ni < 4; ++ni) {
        const int brow = kk * 16 + tx % 16;
        const int bchunk = (tx / 32 % 2 * 8 + ni * 2 + tx % 32 / 16) ^ (brow % 8);
        const int b = k % 3 * 4096 + brow * 128 + bchunk * 8;
        tl::ldmatrix_x4_trans(&B_local[ni * 8], tl::at(B_shared, b));
      }
      #pragma unroll
      for (int mi_1 = 0; mi_1 < 4; ++mi_1) {
        #pragma unroll
        for (int nj = 0; nj < 8; ++nj) {
          const int c = (mi_1 * 8 + nj) * 4;
          tl::mma_m16n8k16_f32_f16_f16(&C_local[c], &A_local[mi_1 * 8], &B_local[nj * 4]);
        }
      }
    }
    if (k + 3 - 1 < 4) {
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; ++i_2) {
        const int stage = (k + 2) % 3;
        const int id_2 = i_2 * 128 + tx;
        const int k_1 = k + 3 - 1;
        const int row_3 = id_2 / 4;
        const int to_2 = stage * 4096 + row_3 * 32 + ((id_2 % 4) ^ (row_3 / 2 % 4)) * 8;
        tl::cp_async<16>(tl::at(A_shared, to_2), &A[(by * 128 + row_3) * 128 + k_1 * 32 + id_2 % 4 * 8]);
        const int stage_1 = (k + 2) % 3;
        const int id_3 = i_2 * 128 + tx;
        const int k_2 = k + 3 - 1;
        const int row_4 = id_3 / 16;
        const int to_3 = stage_1 * 4096 + row_4 * 128 + ((id_3 % 16) ^ (row_4 % 8)) * 8;
        tl::cp_async<16>(tl::at(B_shared, to_3), &B[(k_2 * 32 + row_4) * 256 + bx * 128 + id_3 % 16 * 8]);
      }
    }
    tl::cp_async_commit();
  }
  #pragma unroll
  for (int mi_2 = 0; mi_2 < 4; ++mi_2) {
    #pragma unroll
    for (int nj_1 = 0; nj_1 < 8; ++nj_1) {
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        tl::store(&C[(by * 128 + tx / 64 * 64 + mi_2 * 16 + h * 8 + tx % 32 / 4) * 256 + bx * 128 + tx % 64 / 32 * 64 + nj_1 * 8 + tx % 4 * 2], tl::load<2>(&C_local[mi_2 * 32 + nj_1 * 4 + h * 2]));
      }
    }
  }
}
