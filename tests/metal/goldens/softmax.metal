#include <tl/common.h>
#include <tl/math.h>
#include <tl/warp.h>

[[kernel, max_total_threads_per_threadgroup(128)]] void softmax_kernel(const device half* A [[buffer(0)]], device half* B [[buffer(1)]], uint3 threadgroup_position [[threadgroup_position_in_grid]], uint3 thread_position [[thread_position_in_threadgroup]]) {
  const int bx = int(threadgroup_position.x);
  const int tx = int(thread_position.x);
  alignas(16) float tile[32];
  alignas(16) float best[4];
  alignas(16) float total[4];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 4 + tx / 32;
    const int i1 = tx % 32 * 8;
    #pragma clang loop unroll(full)
    for (int v = 0; v < 8; ++v) {
      tile[r * 8 + v] = float(bx * 16 + i0 < 37 && tx % 32 * 8 < 200 ? A[(bx * 16 + i0) * 200 + i1 + v] : half(0.0f));
    }
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 32; ++r) {
    const int j = tx % 32 * 8 + r % 8;
    tile[r] = j < 200 ? tile[r] : -tl::infinity<float>();
  }
  alignas(16) float best_part[4];
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = -tl::infinity<float>();
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 32; ++r) {
    best_part[r / 8] = tl::max(best_part[r / 8], tile[r]);
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = tl::max(best_part[slot], tl::shfl_xor(best_part[slot], 16, 4294967295u));
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = tl::max(best_part[slot], tl::shfl_xor(best_part[slot], 8, 4294967295u));
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = tl::max(best_part[slot], tl::shfl_xor(best_part[slot], 4, 4294967295u));
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = tl::max(best_part[slot], tl::shfl_xor(best_part[slot], 2, 4294967295u));
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    best_part[slot] = tl::max(best_part[slot], tl::shfl_xor(best_part[slot], 1, 4294967295u));
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    best[r] = best_part[r];
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 32; ++r) {
    tile[r] = tl::exp(tile[r] - best[r / 8]);
  }
  alignas(16) float total_part[4];
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] = 0.0f;
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 32; ++r) {
    total_part[r / 8] += tile[r];
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 16, 4294967295u);
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 8, 4294967295u);
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 4, 4294967295u);
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 2, 4294967295u);
  }
  #pragma clang loop unroll(full)
  for (int slot = 0; slot < 4; ++slot) {
    total_part[slot] += tl::shfl_xor(total_part[slot], 1, 4294967295u);
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    total[r] = total_part[r];
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 32; ++r) {
    tile[r] = tile[r] / total[r / 8];
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 4 + tx / 32;
    const int i1 = tx % 32 * 8;
    if (bx * 16 + i0 < 37 && tx % 32 * 8 < 200) {
      tl::store(&B[(bx * 16 + i0) * 200 + i1], tl::cast<half>(tl::load<8>(&tile[r * 8])));
    }
  }
}
