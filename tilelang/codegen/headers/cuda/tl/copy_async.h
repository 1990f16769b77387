// Asynchronous copies from global to shared memory (PTX ISA, cp.async).
#pragma once
#include <tl/common.h>

namespace tl {

template <int bytes, cache policy = cache::automatic>
TL_DEVICE void cp_async(shared_place dst, const void* src) {
  constexpr bool through_l2 = policy == cache::cg || (policy == cache::automatic && bytes == 16);
  static_assert(!through_l2 || bytes == 16, "cp.async.cg copies 16 bytes");
  if constexpr (through_l2) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst.address), "l"(src)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(dst.address), "l"(src),
                 "n"(bytes)
                 : "memory");
  }
}

// Where `predicate` is false nothing is read, and zeros are written.
template <int bytes, cache policy = cache::automatic>
TL_DEVICE void cp_async(shared_place dst, const void* src, bool predicate) {
  constexpr bool through_l2 = policy == cache::cg || (policy == cache::automatic && bytes == 16);
  static_assert(!through_l2 || bytes == 16, "cp.async.cg copies 16 bytes");
  const int size = predicate ? bytes : 0;
  if constexpr (through_l2) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst.address),
                 "l"(src), "r"(size)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst.address),
                 "l"(src), "n"(bytes), "r"(size)
                 : "memory");
  }
}

TL_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int groups> TL_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

}  // namespace tl
