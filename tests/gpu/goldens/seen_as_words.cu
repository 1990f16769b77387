#include <tl/common.h>
#include <tl/float16.h>

extern "C" __global__ void __launch_bounds__(64) seen_as_words_kernel(const tl::float16* __restrict__ A, tl::uint32* __restrict__ B) {
  const int tx = int(threadIdx.x);
  __align__(16) tl::float16 x[16];
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 8;
    tl::store(&x[r * 8], tl::load<8>(&A[i0 * 64 + i1]));
  }
  tl::uint32* words = (tl::uint32*)x;
  #pragma unroll
  for (int r = 0; r < 8; ++r) {
    words[r] = words[r] ^ 2147516416u;
  }
  #pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i0 = r * 8 + tx / 8;
    const int i1 = tx % 8 * 4;
    tl::store(&B[i0 * 32 + i1], tl::load<4>(&words[r * 4]));
  }
}
