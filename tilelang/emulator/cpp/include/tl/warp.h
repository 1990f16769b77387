// What the lanes of a warp tell each other. The functions are those of the device header, whose
// inner calls get the line of the kernel that called them.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_warp(emulator::Place at = emulator::Place::here()) {
  emulator::sync_warp(0xffffffffu, at.line);
}
TL_DEVICE void sync_warp(uint32 mask, emulator::Place at = emulator::Place::here()) {
  emulator::sync_warp(mask, at.line);
}

// Values of any size travel as 32-bit words.
template <class T, class F>
TL_DEVICE T by_words(T value, F exchange) {
  constexpr int words = (sizeof(T) + 3) / 4;
  uint32 raw[words] = {};
  memcpy(raw, &value, sizeof(T));
  for (int i = 0; i < words; ++i) raw[i] = exchange(raw[i]);
  T out;
  memcpy(&out, raw, sizeof(T));
  return out;
}

#define TL_SHUFFLE(name, function, type)                                                           \
  template <int width = 32, class T>                                                               \
  TL_DEVICE T name(T value, type place, uint32 mask, TL_HERE) {                                    \
    return by_words(value, [=](uint32 word) { return function(mask, word, place, width, line); }); \
  }
TL_SHUFFLE(shfl_sync, __shfl_sync, int)
TL_SHUFFLE(shfl_xor, __shfl_xor_sync, int)
TL_SHUFFLE(shfl_up, __shfl_up_sync, uint32)
TL_SHUFFLE(shfl_down, __shfl_down_sync, uint32)
#undef TL_SHUFFLE

TL_DEVICE int any_sync(int predicate, uint32 mask, TL_HERE) {
  return __any_sync(mask, predicate, line);
}
TL_DEVICE int all_sync(int predicate, uint32 mask, TL_HERE) {
  return __all_sync(mask, predicate, line);
}
TL_DEVICE uint32 ballot_sync(int predicate, uint32 mask, TL_HERE) {
  return __ballot_sync(mask, predicate, line);
}
TL_DEVICE uint32 ballot(int predicate, TL_HERE) {
  return __ballot_sync(0xffffffffu, predicate, line);
}
TL_DEVICE uint32 activemask() { return __activemask(); }

// Lanes agree when all bits of their values do.
template <class T>
TL_DEVICE uint32 match_any_sync(T value, uint32 mask, TL_HERE) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32- or 64-bit values");
  if constexpr (sizeof(T) == 4) return __match_any_sync(mask, bit_cast<uint32>(value), line);
  else return __match_any_sync(mask, bit_cast<uint64>(value), line);
}
template <class T>
TL_DEVICE uint32 match_all_sync(T value, uint32 mask, TL_HERE) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32- or 64-bit values");
  int agree;
  if constexpr (sizeof(T) == 4)
    return __match_all_sync(mask, bit_cast<uint32>(value), &agree, line);
  else return __match_all_sync(mask, bit_cast<uint64>(value), &agree, line);
}

#define TL_WARP_REDUCE(name, expression)                    \
  template <int width = 32, class T>                        \
  TL_DEVICE T warp_reduce_##name(T a, TL_HERE) {            \
    for (int step = width / 2; step > 0; step /= 2) {       \
      const T b = shfl_xor<32>(a, step, 0xffffffffu, line); \
      a = T(expression);                                    \
    }                                                       \
    return a;                                               \
  }
TL_WARP_REDUCE(sum, a + b)
TL_WARP_REDUCE(max, max(a, b))
TL_WARP_REDUCE(min, min(a, b))
TL_WARP_REDUCE(bitand, a& b)
TL_WARP_REDUCE(bitor, a | b)
TL_WARP_REDUCE(bitxor, a ^ b)
#undef TL_WARP_REDUCE

TL_DEVICE bool elect_one() { return thread_number() % 32 == 0; }
template <int thread_extent>
TL_DEVICE bool shuffle_elect(TL_HERE) {
  const int warp = int(__shfl_sync(0xffffffffu, uint32(thread_number() / 32), 0, 32, line));
  if constexpr (thread_extent == 0) return warp == 0 && elect_one();
  else return warp % (thread_extent / 32) == 0 && elect_one();
}

template <int warp_size = 32>
TL_DEVICE int get_lane_idx() {
  return thread_number() % warp_size;
}
template <int warp_size = 32>
TL_DEVICE int get_warp_idx() {
  return thread_number() / warp_size;
}
template <int warp_size = 32>
TL_DEVICE int get_warp_idx_sync(TL_HERE) {
  return int(__shfl_sync(0xffffffffu, uint32(thread_number() / warp_size), 0, 32, line));
}
template <int warp_size = 32, int warps_per_group = 4>
TL_DEVICE int get_warp_group_idx() {
  return thread_number() / (warp_size * warps_per_group);
}

}  // namespace tl
