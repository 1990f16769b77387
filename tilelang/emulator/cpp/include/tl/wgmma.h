// Matrix instructions of a warp group. The runtime does the work, when it is waited for.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void wgmma_fence(TL_HERE) { emulator::wgmma_fence(line); }
TL_DEVICE void wgmma_commit(TL_HERE) { emulator::wgmma_commit(line); }
template <int groups>
TL_DEVICE void wgmma_wait(TL_HERE) {
  emulator::wgmma_wait(groups, line);
}
template <class T>
TL_DEVICE void wgmma_fence_operand(T*, int) {}

#define TL_WGMMA(suffix, ...)                                                                     \
  }                                                                                               \
  namespace tl::emulator {                                                                        \
  void wgmma_##suffix(const Wgmma& what, int line);                                               \
  }                                                                                               \
  namespace tl {                                                                                  \
  template <int n, int a_swizzle, int a_leading, int a_stride, int a_major, int b_swizzle,        \
            int b_leading, int b_stride, int b_major = 0>                                         \
  TL_DEVICE void wgmma_ss_##suffix(void* d, const void* a, const void* b, int scale_d, TL_HERE) { \
    emulator::wgmma_##suffix({d,                                                                  \
                              a,                                                                  \
                              b,                                                                  \
                              {a_swizzle, a_leading, a_stride, a_major},                          \
                              {b_swizzle, b_leading, b_stride, b_major},                          \
                              n,                                                                  \
                              scale_d,                                                            \
                              false},                                                             \
                             line);                                                               \
  }                                                                                               \
  template <int n, int b_swizzle, int b_leading, int b_stride, int b_major = 0>                   \
  TL_DEVICE void wgmma_rs_##suffix(void* d, const void* a, const void* b, int scale_d, TL_HERE) { \
    emulator::wgmma_##suffix(                                                                     \
        {d, a, b, {}, {b_swizzle, b_leading, b_stride, b_major}, n, scale_d, true}, line);        \
  }
#include <emulator/wgmma_rows.h>
#undef TL_WGMMA

}  // namespace tl
