// What the 64 lanes of a wave tell each other. As in the device header masks do not count: all lanes
// that live take part, and one that is elsewhere is reported.
#pragma once
#include <tl/common.h>

namespace tl {

constexpr int wave = 64;
constexpr unsigned long long whole_wave = ~0ull;

TL_DEVICE int lane_number() { return thread_number() % wave; }

TL_DEVICE void sync_warp(emulator::Place at = emulator::Place::here()) {
  emulator::sync_warp(whole_wave, at.line);
}
TL_DEVICE void sync_warp(uint32, emulator::Place at = emulator::Place::here()) { sync_warp(at); }

// The value of another lane, whatever its size, in 32-bit words.
template <class T> TL_DEVICE T from_lane(T value, int lane, const char* what, int line) {
  constexpr int words = (sizeof(T) + 3) / 4;
  uint32 raw[words] = {};
  memcpy(raw, &value, sizeof(T));
  for (int i = 0; i < words; ++i)
    raw[i] = emulator::shuffle(whole_wave, raw[i], lane & (wave - 1), what, line);
  T out;
  memcpy(&out, raw, sizeof(T));
  return out;
}

// Segments of `width` lanes: past the end of its own a lane keeps its value.
template <int width = wave, class T> TL_DEVICE T shfl_sync(T value, int lane, uint32, TL_HERE) {
  const int start = lane_number() & ~(width - 1);
  return from_lane(value, start + (lane & (width - 1)), "shfl", line);
}
template <int width = wave, class T> TL_DEVICE T shfl_xor(T value, int bits, uint32, TL_HERE) {
  const int lane = lane_number(), from = lane ^ bits;
  const bool inside = from < (lane & ~(width - 1)) + width;
  return from_lane(value, inside ? from : lane, "shfl_xor", line);
}
template <int width = wave, class T> TL_DEVICE T shfl_up(T value, uint32 delta, uint32, TL_HERE) {
  const int lane = lane_number(), from = lane - int(delta);
  return from_lane(value, from < (lane & ~(width - 1)) ? lane : from, "shfl_up", line);
}
template <int width = wave, class T> TL_DEVICE T shfl_down(T value, uint32 delta, uint32, TL_HERE) {
  const int lane = lane_number(), from = lane + int(delta);
  const bool inside = from < (lane & ~(width - 1)) + width;
  return from_lane(value, inside ? from : lane, "shfl_down", line);
}

TL_DEVICE int any_sync(int predicate, uint32, TL_HERE) {
  return emulator::ballot(whole_wave, predicate != 0, line) != 0;
}
TL_DEVICE int all_sync(int predicate, uint32, TL_HERE) {
  return emulator::ballot(whole_wave, predicate == 0, line) == 0;
}

template <int width, class T, class F>
TL_DEVICE T warp_fold(T value, F combine, const char* what, int line) {
  for (int step = width / 2; step > 0; step /= 2)
    value = combine(value, from_lane(value, lane_number() ^ step, what, line));
  return value;
}
#define TL_FOLD(name, combined)                                                              \
  template <int width = wave, class T> TL_DEVICE T warp_reduce_##name(T value, TL_HERE) {    \
    return warp_fold<width>(value, [](T a, T b) { return combined; }, "warp_reduce", line);  \
  }
TL_FOLD(sum, T(a + b))
TL_FOLD(max, max(a, b))
TL_FOLD(min, min(a, b))
TL_FOLD(bitand, T(a & b))
TL_FOLD(bitor, T(a | b))
TL_FOLD(bitxor, T(a ^ b))
#undef TL_FOLD

TL_DEVICE bool elect_one() { return lane_number() == 0; }
template <int thread_extent> TL_DEVICE bool shuffle_elect() {
  const int warp = thread_number() / wave;
  if constexpr (thread_extent == 0) return warp == 0 && elect_one();
  else return warp % (thread_extent / wave) == 0 && elect_one();
}

template <int warp_size = wave> TL_DEVICE int get_lane_idx() { return thread_number() % warp_size; }
template <int warp_size = wave> TL_DEVICE int get_warp_idx() { return thread_number() / warp_size; }
template <int warp_size = wave> TL_DEVICE int get_warp_idx_sync() {
  return thread_number() / warp_size;
}
template <int warp_size = wave, int warps_per_group = 4> TL_DEVICE int get_warp_group_idx() {
  return thread_number() / (warp_size * warps_per_group);
}

}  // namespace tl
