// What the lanes of a simdgroup tell each other. `mask` is that of all lanes: Metal has no other.
#pragma once
#include <tl/common.h>

namespace tl {

TL_INLINE void sync_warp() {
  metal::simdgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
}
TL_INLINE void sync_warp(uint) { sync_warp(); }

#define TL_SHUFFLE(name, function)                                                        \
  template <class T> TL_INLINE T name(T value, uint place, uint) {                        \
    return metal::function(value, ushort(place));                                         \
  }                                                                                       \
  TL_INLINE bfloat name(bfloat value, uint place, uint mask) {                            \
    return as_type<bfloat>(name(as_type<ushort>(value), place, mask));                    \
  }                                                                                       \
  TL_INLINE bool name(bool value, uint place, uint mask) {                                \
    return name(uint(value), place, mask) != 0;                                           \
  }
TL_SHUFFLE(shfl_sync, simd_shuffle)
TL_SHUFFLE(shfl_xor, simd_shuffle_xor)
#undef TL_SHUFFLE

TL_INLINE int any_sync(int predicate, uint) { return metal::simd_any(predicate != 0); }
TL_INLINE int all_sync(int predicate, uint) { return metal::simd_all(predicate != 0); }

#define TL_WARP_REDUCE(name, expression)                                                  \
  template <int width, class T> TL_INLINE T reduce_##name(T a) {                          \
    TL_UNROLL for (int step = width / 2; step > 0; step /= 2) {                           \
      const T b = shfl_xor(a, uint(step), 0xffffffffu);                                   \
      a = T(expression);                                                                  \
    }                                                                                     \
    return a;                                                                             \
  }                                                                                       \
  template <int width = 32, class T> TL_INLINE T warp_reduce_##name(T a) {                \
    return reduce_##name<width>(a);                                                       \
  }
TL_WARP_REDUCE(sum, a + b)
TL_WARP_REDUCE(max, max(a, b))
TL_WARP_REDUCE(min, min(a, b))
TL_WARP_REDUCE(bitand, a & b)
TL_WARP_REDUCE(bitor, a | b)
TL_WARP_REDUCE(bitxor, a ^ b)
#undef TL_WARP_REDUCE

}  // namespace tl
