// CUDA's warp intrinsics (PTX ISA, shfl.sync, vote.sync, match.sync, redux.sync), and barriers.
#pragma once

namespace tl::emulator {

static inline int lane_number() {
  const Context& c = *current;
  return int((c.thread.x + c.block_size.x * (c.thread.y + c.block_size.y * c.thread.z)) % 32);
}

}  // namespace tl::emulator

static inline void __syncthreads(TL_HERE) { tl::emulator::barrier(0, 0, line); }
static inline int __syncthreads_count(int p, TL_HERE) {
  return tl::emulator::barrier_count(p, line);
}
static inline int __syncthreads_or(int p, TL_HERE) {
  return tl::emulator::barrier_count(p, line) > 0;
}
static inline int __syncthreads_and(int p, TL_HERE) {
  return tl::emulator::barrier_count(!p, line) == 0;
}
static inline void __syncwarp(unsigned mask = ~0u, TL_HERE) { tl::emulator::sync_warp(mask, line); }
static inline void __threadfence_block(TL_HERE) { tl::emulator::yield(line); }
static inline void __threadfence(TL_HERE) { tl::emulator::memory_fence(line); }
static inline void __threadfence_system(TL_HERE) { tl::emulator::memory_fence(line); }
[[noreturn]] static inline void __trap(TL_HERE) { tl::emulator::trap(line); }

// Segments of `width` lanes: past the end of its own a lane keeps its value.
static inline unsigned tl_shuffle(unsigned mask, unsigned value, int place, const char* what,
                                  int line) {
  return tl::emulator::shuffle(mask, value, place, what, line);
}
// Of where to read from, shfl.sync looks at five bits.
static inline unsigned __shfl_sync(unsigned mask, unsigned value, int source, int width = 32,
                                   TL_HERE) {
  const int start = tl::emulator::lane_number() & ~(width - 1);
  return tl_shuffle(mask, value, start + (source & (width - 1)), "shfl.sync.idx", line);
}
static inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, int bits, int width = 32,
                                       TL_HERE) {
  const int lane = tl::emulator::lane_number(), from = lane ^ (bits & 31);
  const bool inside = from < (lane & ~(width - 1)) + width;
  return tl_shuffle(mask, value, inside ? from : lane, "shfl.sync.bfly", line);
}
static inline unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned by, int width = 32,
                                      TL_HERE) {
  const int lane = tl::emulator::lane_number(), from = lane - int(by & 31);
  return tl_shuffle(mask, value, from < (lane & ~(width - 1)) ? lane : from, "shfl.sync.up", line);
}
static inline unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned by, int width = 32,
                                        TL_HERE) {
  const int lane = tl::emulator::lane_number(), from = lane + int(by & 31);
  const bool inside = from < (lane & ~(width - 1)) + width;
  return tl_shuffle(mask, value, inside ? from : lane, "shfl.sync.down", line);
}
#define TL_SHUFFLE_AS(name, place_type, T)                                                  \
  static inline T name(unsigned mask, T value, place_type place, int width = 32, TL_HERE) { \
    return tl_same_bits<T>(name(mask, tl_same_bits<unsigned>(value), place, width, line));  \
  }
#define TL_SHUFFLES_AS(T)                    \
  TL_SHUFFLE_AS(__shfl_sync, int, T)         \
  TL_SHUFFLE_AS(__shfl_xor_sync, int, T)     \
  TL_SHUFFLE_AS(__shfl_up_sync, unsigned, T) \
  TL_SHUFFLE_AS(__shfl_down_sync, unsigned, T)
TL_SHUFFLES_AS(int)
TL_SHUFFLES_AS(float)
#undef TL_SHUFFLES_AS
#undef TL_SHUFFLE_AS

static inline unsigned __ballot_sync(unsigned mask, int predicate, TL_HERE) {
  return unsigned(tl::emulator::ballot(mask, predicate != 0, line));
}
static inline int __any_sync(unsigned mask, int predicate, TL_HERE) {
  return __ballot_sync(mask, predicate, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, TL_HERE) {
  return __ballot_sync(mask, !predicate, line) == 0;
}
static inline unsigned __activemask() { return unsigned(tl::emulator::active_mask()); }
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, TL_HERE) {
  return unsigned(tl::emulator::match(mask, value, line));
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int* agree, TL_HERE) {
  const unsigned taking_part = __ballot_sync(mask, 1, line);
  *agree = __match_any_sync(mask, value, line) == taking_part;
  return *agree ? taking_part : 0;
}
