// Barriers of a block and memory fences (PTX ISA, bar and membar).
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_threads() { __syncthreads(); }
TL_DEVICE void sync_threads(int id) { asm volatile("bar.sync %0;" ::"r"(id) : "memory"); }
TL_DEVICE void sync_threads(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}
TL_DEVICE void named_barrier_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}
TL_DEVICE void fence_block() { __threadfence_block(); }
TL_DEVICE void fence_device() { __threadfence(); }

TL_DEVICE int syncthreads_and(int predicate) { return __syncthreads_and(predicate); }
TL_DEVICE int syncthreads_or(int predicate) { return __syncthreads_or(predicate); }
TL_DEVICE int syncthreads_count(int predicate) { return __syncthreads_count(predicate); }

}  // namespace tl
