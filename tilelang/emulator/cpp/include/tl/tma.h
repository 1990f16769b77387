// Bulk copies between global and shared memory (PTX ISA, cp.async.bulk). One thread issues them.
#pragma once
#include <tl/common.h>
#include <tl/mbarrier.h>

namespace tl {

// The host writes what the emulator needs where a GPU has its descriptor.
struct __align__(64) tensor_map {
  emulator::TensorMap description;
};

// Coordinates come innermost dimension first.
#define TL_BULK(params, ...)                                                                     \
  template <eviction policy = eviction::normal>                                                  \
  TL_DEVICE void tma_load(void* dst, const tensor_map& map, mbarrier& barrier, TL_UNPACK params, \
                          emulator::Place p = emulator::Place::here()) {                         \
    const int at[5] = {__VA_ARGS__};                                                             \
    emulator::bulk_load(dst, map.description, &barrier, at, p.line);                             \
  }                                                                                              \
  TL_DEVICE void tma_store(const void* src, const tensor_map& map, TL_UNPACK params,             \
                           emulator::Place p = emulator::Place::here()) {                        \
    const int at[5] = {__VA_ARGS__};                                                             \
    emulator::bulk_store(src, map.description, false, at, p.line);                               \
  }                                                                                              \
  TL_DEVICE void tma_reduce_add(const void* src, const tensor_map& map, TL_UNPACK params,        \
                                emulator::Place p = emulator::Place::here()) {                   \
    const int at[5] = {__VA_ARGS__};                                                             \
    emulator::bulk_store(src, map.description, true, at, p.line);                                \
  }
#define TL_UNPACK(...) __VA_ARGS__
TL_BULK((int c0), c0)
TL_BULK((int c0, int c1), c0, c1)
TL_BULK((int c0, int c1, int c2), c0, c1, c2)
TL_BULK((int c0, int c1, int c2, int c3), c0, c1, c2, c3)
TL_BULK((int c0, int c1, int c2, int c3, int c4), c0, c1, c2, c3, c4)
#undef TL_UNPACK
#undef TL_BULK

TL_DEVICE void bulk_load(void* dst, const void* src, mbarrier& barrier, int bytes, TL_HERE) {
  emulator::bulk_copy(dst, src, bytes, &barrier, line);
}
TL_DEVICE void tma_prefetch(const tensor_map&) {}
TL_DEVICE void bulk_commit() { emulator::bulk_commit(); }
// A copy takes what it stores when it is waited for: both ways of waiting are one here.
template <int groups, int read = 1>
TL_DEVICE void bulk_wait() {
  emulator::bulk_wait(groups);
}

}  // namespace tl
