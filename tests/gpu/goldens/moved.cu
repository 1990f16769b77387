#include <tl/common.h>
#include <tl/barrier.h>

extern "C" __global__ void __launch_bounds__(64) moved_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  __align__(16) float x[16];
  __align__(16) float y[16];
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&x[r * 4], tl::load<4>(&A[i0 * 32 + i1]));
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&y[r * 4], tl::load<4>(&A[i0 * 32 + i1]));
  }
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    y[r] += x[r];
  }
  float* y_shared = (float*)(shared_memory);
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&y_shared[i0 * 32 + i1], tl::load<4>(&y[r * 4]));
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 16; ++r) {
    const int i_1 = tx % 8 * 4 + r % 4;
    const int j_1 = r / 4 * 8 + tx / 8;
    y_shared[i_1 * 32 + j_1] += x[r];
  }
  tl::sync_threads();
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&y[r * 4], tl::load<4>(&y_shared[i0 * 32 + i1]));
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&B[i0 * 32 + i1], tl::load<4>(&y[r * 4]));
  }
}
