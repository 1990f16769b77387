// Matrix instructions of a wave. The runtime does the work.
#pragma once
#include <tl/common.h>

namespace tl {

#define TL_MFMA(name, ...)                                              \
  }                                                                     \
  namespace tl::emulator {                                              \
  void name(void* d, const void* a, const void* b, int line);           \
  }                                                                     \
  namespace tl {                                                        \
  TL_DEVICE void name(void* d, const void* a, const void* b, TL_HERE) { \
    emulator::name(d, a, b, line);                                      \
  }
#include <emulator/mfma_rows.h>
#undef TL_MFMA

}  // namespace tl
