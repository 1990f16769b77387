// Each row times a weight of its own. Given to the compiler by its path.
#include <cuda_fp16.h>

__device__ __forceinline__ float weighted(half x, float weight) { return __half2float(x) * weight; }

__global__ void weighted_rows(const half *A, const float *weights, half *B, const int rows) {
  __shared__ float weight;
  if (threadIdx.x == 0) weight = weights[blockIdx.x];
  __syncthreads();
  if (int(blockIdx.x) >= rows) return;
  for (int column = threadIdx.x; column < 96; column += blockDim.x)
    B[blockIdx.x * 96 + column] = __float2half(weighted(A[blockIdx.x * 96 + column], weight));
}
