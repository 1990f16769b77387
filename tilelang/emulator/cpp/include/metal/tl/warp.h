// What the lanes of a simdgroup tell each other, with the line of the kernel that asks.
#pragma once
#include <tl/common.h>

namespace tl {

TL_INLINE void sync_warp(emulator::Place at = emulator::Place::here()) {
  emulator::sync_warp(0xffffffffu, at.line);
}
TL_INLINE void sync_warp(uint, emulator::Place at = emulator::Place::here()) {
  emulator::sync_warp(0xffffffffu, at.line);
}

#define TL_SHUFFLE(name, function)                                                        \
  template <class T> TL_INLINE T name(T value, uint place, uint, TL_HERE) {               \
    return metal::function(value, ushort(place), line);                                   \
  }
TL_SHUFFLE(shfl_sync, simd_shuffle)
TL_SHUFFLE(shfl_xor, simd_shuffle_xor)
#undef TL_SHUFFLE

TL_INLINE int any_sync(int predicate, uint, TL_HERE) {
  return metal::simd_any(predicate != 0, line);
}
TL_INLINE int all_sync(int predicate, uint, TL_HERE) {
  return metal::simd_all(predicate != 0, line);
}

#define TL_WARP_REDUCE(name, expression)                                                  \
  template <int width = 32, class T> TL_INLINE T warp_reduce_##name(T a, TL_HERE) {       \
    for (int step = width / 2; step > 0; step /= 2) {                                     \
      const T b = shfl_xor(a, uint(step), 0xffffffffu, line);                             \
      a = T(expression);                                                                  \
    }                                                                                     \
    return a;                                                                             \
  }
TL_WARP_REDUCE(sum, a + b)
TL_WARP_REDUCE(max, max(a, b))
TL_WARP_REDUCE(min, min(a, b))
TL_WARP_REDUCE(bitand, a & b)
TL_WARP_REDUCE(bitor, a | b)
TL_WARP_REDUCE(bitxor, a ^ b)
#undef TL_WARP_REDUCE

}  // namespace tl
