#include <tl/common.h>
#include <tl/barrier.h>
#include <tl/simdgroup.h>
#include <tl/warp.h>

[[kernel, max_total_threads_per_threadgroup(128)]] void product_kernel(const device half* A [[buffer(0)]], const device half* B [[buffer(1)]], device float* C [[buffer(2)]], uint3 threadgroup_position [[threadgroup_position_in_grid]], uint3 thread_position [[thread_position_in_threadgroup]]) {
  const int by = int(threadgroup_position.y);
  const int bx = int(threadgroup_position.x);
  const int tx = int(thread_position.x);
  alignas(16) threadgroup uchar shared_memory[14336];
  threadgroup half* A_s = reinterpret_cast<threadgroup half*>(shared_memory + 8192);
  threadgroup half* B_s = reinterpret_cast<threadgroup half*>(shared_memory + 12288);
  alignas(16) float C_l[16];
  #pragma clang loop unroll(full)
  for (int r = 0; r < 16; ++r) {
    C_l[r] = 0.0f;
  }
  for (int step = 0; step < 3; ++step) {
    #pragma clang loop unroll(full)
    for (int r = 0; r < 2; ++r) {
      const int i0 = r * 32 + tx / 4;
      const int i1 = tx % 4 * 8;
      tl::store(&A_s[i0 * 32 + i1], by * 64 + i0 < 100 && step * 32 + tx % 4 * 8 < 80 ? tl::load<8>(&A[(by * 64 + i0) * 80 + step * 32 + i1]) : tl::broadcast<8>(half(0.0f)));
    }
    const int i0 = tx / 4;
    const int i1 = tx % 4 * 8;
    tl::store(&B_s[i0 * 32 + i1], step * 32 + i0 < 80 && bx * 32 + tx % 4 * 8 < 72 ? tl::load<8>(&B[(step * 32 + i0) * 72 + bx * 32 + i1]) : tl::broadcast<8>(half(0.0f)));
    metal::simdgroup_matrix<float, 8, 8> C_l_matrices[8];
    threadgroup float* C_l_shared = reinterpret_cast<threadgroup float*>(shared_memory);
    #pragma clang loop unroll(full)
    for (int r = 0; r < 4; ++r) {
      tl::store(&C_l_shared[(((r * 2 + tx / 64) * 4 + tx / 2 % 4) * 16 + tx / 8 % 8 * 2 + tx % 2) * 4], tl::load<4>(&C_l[r * 4]));
    }
    tl::sync_threads();
    #pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      #pragma clang loop unroll(full)
      for (int j = 0; j < 2; ++j) {
        tl::simdgroup_load<8>(&C_l_matrices[i * 2 + j], &C_l_shared[((tx / 32 % 2 * 4 + i) * 4 + tx / 64 * 2 + j) * 64]);
      }
    }
    metal::simdgroup_matrix<half, 8, 8> A_s_r[4];
    metal::simdgroup_matrix<half, 8, 8> B_s_r[2];
    #pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) {
      #pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i) {
        tl::simdgroup_load<32>(&A_s_r[i], &A_s[tx / 32 % 2 * 4 * 256 + i * 256 + k * 8]);
      }
      #pragma clang loop unroll(full)
      for (int i = 0; i < 2; ++i) {
        tl::simdgroup_load<32>(&B_s_r[i], &B_s[tx / 64 * 2 * 8 + i * 8 + k * 256]);
      }
      #pragma clang loop unroll(full)
      for (int i = 0; i < 4; ++i) {
        #pragma clang loop unroll(full)
        for (int j = 0; j < 2; ++j) {
          tl::simdgroup_multiply(&C_l_matrices[i * 2 + j], &A_s_r[i], &B_s_r[j]);
        }
      }
    }
    tl::sync_warp();
    #pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
      #pragma clang loop unroll(full)
      for (int j = 0; j < 2; ++j) {
        tl::simdgroup_store<8>(&C_l_shared[((tx / 32 % 2 * 4 + i) * 4 + tx / 64 * 2 + j) * 64], &C_l_matrices[i * 2 + j]);
      }
    }
    tl::sync_threads();
    #pragma clang loop unroll(full)
    for (int r = 0; r < 4; ++r) {
      tl::store(&C_l[r * 4], tl::load<4>(&C_l_shared[(((r * 2 + tx / 64) * 4 + tx / 2 % 4) * 16 + tx / 8 % 8 * 2 + tx % 2) * 4]));
    }
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 16; ++r) {
    C_l[r] = tl::max(C_l[r], 0.0f);
  }
  #pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    const int i0 = r * 16 + tx / 8;
    const int i1 = tx % 8 * 4;
    if (by * 64 + i0 < 100 && bx * 32 + tx % 8 * 4 < 72) {
      tl::store(&C[(by * 64 + i0) * 72 + bx * 32 + i1], tl::load<4>(&C_l[r * 4]));
    }
  }
}
