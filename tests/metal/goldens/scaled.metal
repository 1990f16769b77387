#include <tl/common.h>
#include <tl/math.h>

[[kernel, max_total_threads_per_threadgroup(128)]] void scaled_kernel(const device half* A [[buffer(0)]], device half* B [[buffer(1)]], constant float& factor [[buffer(2)]], constant int& n [[buffer(3)]], uint3 threadgroup_position [[threadgroup_position_in_grid]], uint3 thread_position [[thread_position_in_threadgroup]]) {
  const int bx = int(threadgroup_position.x);
  const int tx = int(thread_position.x);
  const int i = tx * 4;
  #pragma clang loop unroll(full)
  for (int v = 0; v < 4; ++v) {
    if (bx * 512 + i + v < n) {
      B[bx * 512 + i + v] = tl::cast<half>(float(tl::exp(A[bx * 512 + i + v])) * factor);
    }
  }
}
