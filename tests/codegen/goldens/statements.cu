#include <tl/common.h>
#include <tl/atomics.h>
#include <tl/barrier.h>
#include <tl/debug.h>

extern "C" __global__ void __launch_bounds__(64) main_kernel_0(float* __restrict__ A, const int* __restrict__ B, const int limit, const int n) {
  const int bx = int(blockIdx.x);
  const int tx = int(threadIdx.x);
  const int half_1 = n / 2;
  const int i = bx * 64 + tx;
  float total;
  total = 0.0f;
  if (i >= half_1) {
    return;
  }
  for (int k = 2; k < 10; ++k) {
    if (k == limit) {
      break;
    } else if (k % 3 == 1) {
      continue;
    } else {
      total += A[i] * float(k);
    }
  }
  int count;
  count = B[i];
  while (count > 1) {
    count = (count & 1) == 0 ? count >> 1 : count * 3 + 1;
    total -= 1.0f;
  }
  tl::device_assert(total < 1e+30f, "out of range", "tests/codegen/kernels.py", 225);
  tl::print("total", total);
  A[i] = total;
}

extern "C" __global__ void __launch_bounds__(32) main_kernel_1(int* __restrict__ B) {
  const int tx_1 = int(threadIdx.x);
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  int* S = (int*)(shared_memory);
  tl::int64* words = (tl::int64*)S;
  S[tx_1] = B[tx_1];
  tl::sync_threads();
  if (tx_1 < 16) {
    tl::atomic_add<tl::memory_order::acq_rel>(&B[0], int(words[tx_1]));
  }
}
