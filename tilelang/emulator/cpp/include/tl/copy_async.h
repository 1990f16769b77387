// Asynchronous copies from global to shared memory (PTX ISA, cp.async). Until it is waited for, a
// copy has not happened: its destination holds nonsense.
#pragma once
#include <tl/common.h>

namespace tl {

template <int bytes, cache policy = cache::automatic>
TL_DEVICE void cp_async(shared_place dst, const void* src,
                        emulator::Place at = emulator::Place::here()) {
  static_assert(policy != cache::cg || bytes == 16, "cp.async.cg copies 16 bytes");
  emulator::copy_async(dst.address, src, bytes, bytes, at.line);
}
template <int bytes, cache policy = cache::automatic>
TL_DEVICE void cp_async(shared_place dst, const void* src, bool predicate, TL_HERE) {
  static_assert(policy != cache::cg || bytes == 16, "cp.async.cg copies 16 bytes");
  emulator::copy_async(dst.address, src, bytes, predicate ? bytes : 0, line);
}
TL_DEVICE void cp_async_commit() { emulator::copy_async_commit(); }
template <int groups>
TL_DEVICE void cp_async_wait(TL_HERE) {
  emulator::copy_async_wait(groups, line);
}

}  // namespace tl
