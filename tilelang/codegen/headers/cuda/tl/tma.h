// Bulk copies between global and shared memory (PTX ISA, cp.async.bulk). One thread issues them.
#pragma once
#include <tl/common.h>
#include <tl/mbarrier.h>

namespace tl {

// What the host wrote with cuTensorMapEncodeTiled.
struct __align__(64) tensor_map {
  uint64 opaque[16];
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Cache policies as createpolicy.fractional makes them for the whole access.
TL_CONSTEXPR uint64 cache_policy(eviction policy) {
  return policy == eviction::first  ? 0x12f0000000000000ull
         : policy == eviction::last ? 0x14f0000000000000ull
                                    : 0x1000000000000000ull;
}

#define TL_COORDINATES_1 "{%3}"
#define TL_COORDINATES_2 "{%3, %4}"
#define TL_COORDINATES_3 "{%3, %4, %5}"
#define TL_COORDINATES_4 "{%3, %4, %5, %6}"
#define TL_COORDINATES_5 "{%3, %4, %5, %6, %7}"
#define TL_POLICY_1 "%4"
#define TL_POLICY_2 "%5"
#define TL_POLICY_3 "%6"
#define TL_POLICY_4 "%7"
#define TL_POLICY_5 "%8"
#define TL_MASK_1 "%5"
#define TL_MASK_2 "%6"
#define TL_MASK_3 "%7"
#define TL_MASK_4 "%8"
#define TL_MASK_5 "%9"
#define TL_INTS_1 int c0
#define TL_INTS_2 TL_INTS_1, int c1
#define TL_INTS_3 TL_INTS_2, int c2
#define TL_INTS_4 TL_INTS_3, int c3
#define TL_INTS_5 TL_INTS_4, int c4
#define TL_ARGS_1 "r"(c0)
#define TL_ARGS_2 TL_ARGS_1, "r"(c1)
#define TL_ARGS_3 TL_ARGS_2, "r"(c2)
#define TL_ARGS_4 TL_ARGS_3, "r"(c3)
#define TL_ARGS_5 TL_ARGS_4, "r"(c4)

#define TL_TMA_LOAD(rank)                                                                        \
  template <eviction policy = eviction::normal>                                                  \
  TL_DEVICE void tma_load(void* dst, const tensor_map& map, mbarrier& barrier, TL_INTS_##rank) { \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global"                        \
                 ".mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, " TL_COORDINATES_##rank \
                 "], [%2], " TL_POLICY_##rank ";"                                                \
                 ::"r"(shared_address(dst)), "l"(&map), "r"(shared_address(&barrier)),           \
                 TL_ARGS_##rank, "l"(cache_policy(policy)) : "memory");                          \
  }                                                                                              \
  template <eviction policy = eviction::normal>                                                  \
  TL_DEVICE void tma_load_multicast(void* dst, const tensor_map& map, mbarrier& barrier,         \
                                    int mask, TL_INTS_##rank) {                                  \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global"                        \
                 ".mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"               \
                 " [%0], [%1, " TL_COORDINATES_##rank "], [%2], " TL_MASK_##rank                 \
                 ", " TL_POLICY_##rank ";"                                                       \
                 ::"r"(shared_address(dst)), "l"(&map), "r"(shared_address(&barrier)),           \
                 TL_ARGS_##rank, "l"(cache_policy(policy)), "h"(uint16(mask)) : "memory");       \
  }
TL_TMA_LOAD(1)
TL_TMA_LOAD(2)
TL_TMA_LOAD(3)
TL_TMA_LOAD(4)
TL_TMA_LOAD(5)
#undef TL_TMA_LOAD

#define TL_STORED_1 "{%2}"
#define TL_STORED_2 "{%2, %3}"
#define TL_STORED_3 "{%2, %3, %4}"
#define TL_STORED_4 "{%2, %3, %4, %5}"
#define TL_STORED_5 "{%2, %3, %4, %5, %6}"
#define TL_TMA_STORE(rank)                                                                       \
  TL_DEVICE void tma_store(const void* src, const tensor_map& map, TL_INTS_##rank) {             \
    asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.bulk_group [%1, "           \
                 TL_STORED_##rank "], [%0];"                                                     \
                 ::"r"(shared_address(src)), "l"(&map), TL_ARGS_##rank : "memory");              \
  }                                                                                              \
  TL_DEVICE void tma_reduce_add(const void* src, const tensor_map& map, TL_INTS_##rank) {        \
    asm volatile("cp.reduce.async.bulk.tensor." #rank "d.global.shared::cta.add.bulk_group [%1, " \
                 TL_STORED_##rank "], [%0];"                                                     \
                 ::"r"(shared_address(src)), "l"(&map), TL_ARGS_##rank : "memory");              \
  }
TL_TMA_STORE(1)
TL_TMA_STORE(2)
TL_TMA_STORE(3)
TL_TMA_STORE(4)
TL_TMA_STORE(5)
#undef TL_TMA_STORE

TL_DEVICE void bulk_load(void* dst, const void* src, mbarrier& barrier, int bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(dst)),
      "l"(src), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}
TL_DEVICE void tma_prefetch(const tensor_map& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
TL_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// With `read`, waits only until the sources may be written again.
template <int groups, int read = 1> TL_DEVICE void bulk_wait() {
  if constexpr (read) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
  else asm volatile("cp.async.bulk.wait_group %0;" ::"n"(groups) : "memory");
}

#endif

}  // namespace tl
