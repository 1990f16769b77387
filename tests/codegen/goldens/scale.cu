#include <tl/common.h>
#include <tl/float16.h>
#include <tl/barrier.h>

extern "C" __global__ void __launch_bounds__(128) main_kernel(const tl::float16* __restrict__ A, float* __restrict__ B, const float alpha, const int m) {
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  __align__(16) float acc[8];
  tl::float16* S = (tl::float16*)(shared_memory);
  for (int i = 0; i < 4; ++i) {
    tl::store(&S[tx * 8], bx * 4 + i < m ? tl::load<8>(&A[tl::int64(bx * 4 + i) * 1024 + tx * 8]) : tl::broadcast<8>(tl::float16(0.0f)));
    tl::sync_threads();
    const tl::vec<tl::float16, 8> S_lanes = tl::load<8>(&S[tx / 8 * 64 + ((tx % 8) ^ i) * 8]);
    #pragma unroll
    for (int v_1 = 0; v_1 < 8; ++v_1) {
      acc[v_1] = float(S_lanes[v_1]) * alpha;
    }
    tl::sync_threads();
    if (bx * 4 + i < m) {
      tl::vec<float, 8> B_lanes;
      #pragma unroll
      for (int v_2 = 0; v_2 < 8; ++v_2) {
        B_lanes[v_2] = acc[v_2] + 1.0f;
      }
      tl::store(&B[tl::int64(bx * 4 + i) * 1024 + tx / 8 * 64 + ((tx % 8) ^ i) * 8], B_lanes);
    }
  }
}
