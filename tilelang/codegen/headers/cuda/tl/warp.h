// What the lanes of a warp tell each other (PTX ISA, shfl.sync, vote.sync, redux.sync, elect.sync).
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_warp() { __syncwarp(); }
TL_DEVICE void sync_warp(uint32 mask) { __syncwarp(mask); }

// Values of any size travel as 32-bit words.
template <class T, class F> TL_DEVICE T by_words(T value, F exchange) {
  constexpr int words = (sizeof(T) + 3) / 4;
  uint32 raw[words] = {};
  memcpy(raw, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) raw[i] = exchange(raw[i]);
  T out;
  memcpy(&out, raw, sizeof(T));
  return out;
}

template <int width = 32, class T> TL_DEVICE T shfl_sync(T value, int lane, uint32 mask) {
  return by_words(value, [=](uint32 word) { return __shfl_sync(mask, word, lane, width); });
}
template <int width = 32, class T> TL_DEVICE T shfl_xor(T value, int lane_mask, uint32 mask) {
  return by_words(value,
                  [=](uint32 word) { return __shfl_xor_sync(mask, word, lane_mask, width); });
}
template <int width = 32, class T> TL_DEVICE T shfl_up(T value, uint32 delta, uint32 mask) {
  return by_words(value, [=](uint32 word) { return __shfl_up_sync(mask, word, delta, width); });
}
template <int width = 32, class T> TL_DEVICE T shfl_down(T value, uint32 delta, uint32 mask) {
  return by_words(value, [=](uint32 word) { return __shfl_down_sync(mask, word, delta, width); });
}

TL_DEVICE int any_sync(int predicate, uint32 mask) { return __any_sync(mask, predicate); }
TL_DEVICE int all_sync(int predicate, uint32 mask) { return __all_sync(mask, predicate); }
TL_DEVICE uint32 ballot_sync(int predicate, uint32 mask) { return __ballot_sync(mask, predicate); }
TL_DEVICE uint32 ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
TL_DEVICE uint32 activemask() { return __activemask(); }

// Lanes agree when all bits of their values do.
template <class T> TL_DEVICE uint32 match_any_sync(T value, uint32 mask) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32- or 64-bit values");
  if constexpr (sizeof(T) == 4) return __match_any_sync(mask, bit_cast<uint32>(value));
  else return __match_any_sync(mask, bit_cast<uint64>(value));
}
template <class T> TL_DEVICE uint32 match_all_sync(T value, uint32 mask) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32- or 64-bit values");
  int agree;
  if constexpr (sizeof(T) == 4) return __match_all_sync(mask, bit_cast<uint32>(value), &agree);
  else return __match_all_sync(mask, bit_cast<uint64>(value), &agree);
}

template <int width, class T, class F> TL_DEVICE T warp_fold(T value, F combine) {
#pragma unroll
  for (int step = width / 2; step > 0; step /= 2)
    value = combine(value, shfl_xor<32>(value, step, 0xffffffffu));
  return value;
}

template <class T> struct is_int32 {
  static constexpr bool value = is_same<T, int>::value || is_same<T, uint32>::value;
};

// One instruction for whole warps of 32-bit integers, from sm_80 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TL_REDUX(function)                                     \
  if constexpr (width == 32 && is_int32<T>::value) {           \
    return __reduce_##function##_sync(0xffffffffu, value);     \
  } else
#else
#define TL_REDUX(function)
#endif

template <int width = 32, class T> TL_DEVICE T warp_reduce_sum(T value) {
  TL_REDUX(add) { return warp_fold<width>(value, [](T a, T b) { return T(a + b); }); }
}
template <int width = 32, class T> TL_DEVICE T warp_reduce_max(T value) {
  TL_REDUX(max) { return warp_fold<width>(value, [](T a, T b) { return max(a, b); }); }
}
template <int width = 32, class T> TL_DEVICE T warp_reduce_min(T value) {
  TL_REDUX(min) { return warp_fold<width>(value, [](T a, T b) { return min(a, b); }); }
}
template <int width = 32, class T> TL_DEVICE T warp_reduce_bitand(T value) {
  return warp_fold<width>(value, [](T a, T b) { return T(a & b); });
}
template <int width = 32, class T> TL_DEVICE T warp_reduce_bitor(T value) {
  return warp_fold<width>(value, [](T a, T b) { return T(a | b); });
}
template <int width = 32, class T> TL_DEVICE T warp_reduce_bitxor(T value) {
  return warp_fold<width>(value, [](T a, T b) { return T(a ^ b); });
}
#undef TL_REDUX

TL_DEVICE bool elect_one() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32 elected;
  asm volatile(
      "{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected != 0;
#else
  return thread_number() % 32 == 0;
#endif
}
template <int thread_extent> TL_DEVICE bool shuffle_elect() {
  const int warp = __shfl_sync(0xffffffffu, thread_number() / 32, 0);
  if constexpr (thread_extent == 0) return warp == 0 && elect_one();
  else return warp % (thread_extent / 32) == 0 && elect_one();
}

template <int warp_size = 32> TL_DEVICE int get_lane_idx() { return thread_number() % warp_size; }
template <int warp_size = 32> TL_DEVICE int get_warp_idx() { return thread_number() / warp_size; }
template <int warp_size = 32> TL_DEVICE int get_warp_idx_sync() {
  return __shfl_sync(0xffffffffu, thread_number() / warp_size, 0);
}
template <int warp_size = 32, int warps_per_group = 4> TL_DEVICE int get_warp_group_idx() {
  return thread_number() / (warp_size * warps_per_group);
}

}  // namespace tl
