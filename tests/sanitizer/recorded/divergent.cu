#include <tl/common.h>
#include <tl/barrier.h>

extern "C" __global__ void __launch_bounds__(256) reverse_kernel(const float* __restrict__ A, float* __restrict__ B) {
  const int tx = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  float* tile = (float*)(shared_memory);
  tile[tx] = A[tx];
  if (tx < 100) tl::sync_threads();
  B[tx] = tile[255 - tx];
}
