// Barriers of a block and memory fences (PTX ISA, bar and membar).
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_threads(emulator::Place at = emulator::Place::here()) {
  emulator::barrier(0, 0, at.line);
}
TL_DEVICE void sync_threads(int id, emulator::Place at = emulator::Place::here()) {
  emulator::barrier(id, 0, at.line);
}
TL_DEVICE void sync_threads(int id, int count, TL_HERE) { emulator::barrier(id, count, line); }
TL_DEVICE void named_barrier_arrive(int id, int count, TL_HERE) {
  emulator::barrier_arrive(id, count, line);
}
TL_DEVICE void fence_block(TL_HERE) { emulator::yield(line); }
TL_DEVICE void fence_device(TL_HERE) { emulator::memory_fence(line); }

TL_DEVICE int syncthreads_and(int predicate, TL_HERE) { return __syncthreads_and(predicate, line); }
TL_DEVICE int syncthreads_or(int predicate, TL_HERE) { return __syncthreads_or(predicate, line); }
TL_DEVICE int syncthreads_count(int predicate, TL_HERE) {
  return __syncthreads_count(predicate, line);
}

}  // namespace tl
