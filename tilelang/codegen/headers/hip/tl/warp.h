// What the 64 lanes of a wave tell each other. A wave runs in step: masks say which lanes take part,
// and nobody waits for the others.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
TL_DEVICE void sync_warp(uint32) { sync_warp(); }

// The value of another lane, whatever its size, in 32-bit words.
template <class T> TL_DEVICE T from_lane(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int raw[words] = {};
  __builtin_memcpy(raw, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) raw[i] = __builtin_amdgcn_ds_bpermute(lane * 4, raw[i]);
  T out;
  __builtin_memcpy(&out, raw, sizeof(T));
  return out;
}

// Segments of `width` lanes: past the end of its own a lane keeps its value.
template <int width = wave, class T> TL_DEVICE T shfl_sync(T value, int lane, uint32) {
  const int start = lane_number() & ~(width - 1);
  return from_lane(value, start + (lane & (width - 1)));
}
template <int width = wave, class T> TL_DEVICE T shfl_xor(T value, int lane_mask, uint32) {
  const int lane = lane_number(), from = lane ^ lane_mask;
  return from_lane(value, from < (lane & ~(width - 1)) + width ? from : lane);
}
template <int width = wave, class T> TL_DEVICE T shfl_up(T value, uint32 delta, uint32) {
  const int lane = lane_number(), from = lane - int(delta);
  return from_lane(value, from < (lane & ~(width - 1)) ? lane : from);
}
template <int width = wave, class T> TL_DEVICE T shfl_down(T value, uint32 delta, uint32) {
  const int lane = lane_number(), from = lane + int(delta);
  return from_lane(value, from < (lane & ~(width - 1)) + width ? from : lane);
}

TL_DEVICE int any_sync(int predicate, uint32) {
  return __builtin_amdgcn_ballot_w64(predicate != 0) != 0;
}
TL_DEVICE int all_sync(int predicate, uint32) {
  return __builtin_amdgcn_ballot_w64(predicate == 0) == 0;
}

template <int width, class T, class F> TL_DEVICE T warp_fold(T value, F combine) {
#pragma unroll
  for (int step = width / 2; step > 0; step /= 2)
    value = combine(value, from_lane(value, lane_number() ^ step));
  return value;
}
#define TL_FOLD(name, combined)                                                       \
  template <int width = wave, class T> TL_DEVICE T warp_reduce_##name(T value) {      \
    return warp_fold<width>(value, [](T a, T b) { return combined; });                \
  }
TL_FOLD(sum, T(a + b))
TL_FOLD(max, max(a, b))
TL_FOLD(min, min(a, b))
TL_FOLD(bitand, T(a & b))
TL_FOLD(bitor, T(a | b))
TL_FOLD(bitxor, T(a ^ b))
#undef TL_FOLD

TL_DEVICE bool elect_one() { return thread_number() % wave == 0; }
template <int thread_extent> TL_DEVICE bool shuffle_elect() {
  const int warp = thread_number() / wave;
  if constexpr (thread_extent == 0) return warp == 0 && elect_one();
  else return warp % (thread_extent / wave) == 0 && elect_one();
}

template <int warp_size = wave> TL_DEVICE int get_lane_idx() { return thread_number() % warp_size; }
template <int warp_size = wave> TL_DEVICE int get_warp_idx() { return thread_number() / warp_size; }
template <int warp_size = wave> TL_DEVICE int get_warp_idx_sync() {
  return __builtin_amdgcn_readfirstlane(thread_number() / warp_size);
}
template <int warp_size = wave, int warps_per_group = 4> TL_DEVICE int get_warp_group_idx() {
  return thread_number() / (warp_size * warps_per_group);
}

}  // namespace tl
