#define TL_WGMMA_N128
#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>
#include <tl/cluster.h>
#include <tl/mbarrier.h>
#include <tl/tma.h>
#include <tl/wgmma.h>

extern "C" __global__ void __launch_bounds__(256, 1) main_kernel(const __grid_constant__ tl::tensor_map A_map, const __grid_constant__ tl::tensor_map B_map, const __grid_constant__ tl::tensor_map C_map) {
  const int by = int(blockIdx.y);
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  tl::float16* A_shared = (tl::float16*)(shared_memory);
  tl::float16* B_shared = (tl::float16*)(shared_memory + 16384);
  float* C_shared = (float*)(shared_memory + 49152);
  __shared__ __align__(8) tl::mbarrier full[2];
  __shared__ __align__(8) tl::mbarrier empty[2];
  if (tx == 0) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      tl::mbarrier_init(full[i], 1);
      tl::mbarrier_init(empty[i], 128);
    }
    tl::fence_mbarrier_init();
  }
  tl::sync_threads();
  if (tx >= 128) {
    tl::set_max_nreg<40, 0>();
    if (tx == 128) {
      for (int k = 0; k < 5; ++k) {
        tl::mbarrier_wait_parity(empty[k % 2], (k / 2 + 1) % 2);
        tl::mbarrier_arrive_expect_tx(full[k % 2], 24576);
        tl::tma_load(&A_shared[k % 2 * 4096], A_map, full[k % 2], k * 64, by * 64);
        tl::tma_load<tl::eviction::last>(&B_shared[k % 2 * 8192], B_map, full[k % 2], k * 64, bx * 128);
      }
    }
  } else {
    tl::set_max_nreg<232, 1>();
    __align__(16) float d[64];
    for (int k_1 = 0; k_1 < 5; ++k_1) {
      tl::mbarrier_wait_parity(full[k_1 % 2], k_1 / 2 % 2);
      tl::wgmma_fence();
      #pragma unroll
      for (int kk = 0; kk < 4; ++kk) {
        const int a = k_1 % 2 * 4096 + kk * 16;
        const int b = k_1 % 2 * 8192 + kk * 16;
        tl::wgmma_ss_k16_f32_f16_f16<128, 128, 16, 1024, 0, 128, 16, 1024>(&d[0], &A_shared[a], &B_shared[b], k_1 + kk > 0 ? 1 : 0);
      }
      tl::wgmma_commit();
      tl::wgmma_wait<0>();
      tl::mbarrier_arrive(empty[k_1 % 2]);
    }
    #pragma unroll
    for (int j = 0; j < 16; ++j) {
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          const int row = tx / 32 * 16 + tx % 32 / 4 + h * 8;
          const int col = j * 8 + tx % 4 * 2 + v;
          C_shared[j / 4 * 2048 + tx / 32 * 512 + h * 256 + tx % 32 / 4 * 32 + (j * 8 + tx % 4 * 2 + v) % 32] = d[j * 4 + h * 2 + v];
        }
      }
    }
    tl::fence_proxy_async();
    tl::sync_threads(1, 128);
    if (tx == 0) {
      #pragma unroll
      for (int j_1 = 0; j_1 < 4; ++j_1) {
        tl::tma_store(&C_shared[j_1 * 2048], C_map, bx * 128 + j_1 * 32, by * 64);
      }
      tl::bulk_commit();
      tl::bulk_wait<0, 0>();
    }
  }
}
