// Matrix instructions of one warp, and the loads that feed them. The runtime does the work.
#pragma once
#include <tl/common.h>

namespace tl {

#define TL_MMA(name, ...)                                               \
  }                                                                     \
  namespace tl::emulator {                                              \
  void name(void* d, const void* a, const void* b, int line);           \
  }                                                                     \
  namespace tl {                                                        \
  TL_DEVICE void name(void* d, const void* a, const void* b, TL_HERE) { \
    emulator::name(d, a, b, line);                                      \
  }
#include <emulator/mma_rows.h>
#undef TL_MMA

#define TL_MATRIX_MOVES(count, suffix, transposed)                                            \
  TL_DEVICE void ldmatrix_x##count##suffix(void* dst, shared_place row, TL_HERE) {            \
    emulator::load_matrices(count, transposed, static_cast<uint32*>(dst), row.address, line); \
  }                                                                                           \
  TL_DEVICE void stmatrix_x##count##suffix(shared_place row, const void* src, TL_HERE) {      \
    emulator::store_matrices(count, transposed, row.address, static_cast<const uint32*>(src), \
                             line);                                                           \
  }
TL_MATRIX_MOVES(1, , false)
TL_MATRIX_MOVES(2, , false)
TL_MATRIX_MOVES(4, , false)
TL_MATRIX_MOVES(1, _trans, true)
TL_MATRIX_MOVES(2, _trans, true)
TL_MATRIX_MOVES(4, _trans, true)
#undef TL_MATRIX_MOVES

}  // namespace tl
