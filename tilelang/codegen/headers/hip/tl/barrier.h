// The barrier of a block, and memory fences.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_threads() { __syncthreads(); }
TL_DEVICE void fence_block() { __threadfence_block(); }
TL_DEVICE void fence_device() { __threadfence(); }

// In how many threads a predicate holds: each wave counts its own, in memory that a barrier on
// either side keeps from being used again too early.
TL_DEVICE int syncthreads_count(int predicate) {
  __shared__ int counted;
  if (thread_number() == 0) counted = 0;
  __syncthreads();
  const uint64 votes = __builtin_amdgcn_ballot_w64(predicate != 0);
  if (lane_number() == 0)
    __hip_atomic_fetch_add(&counted, __builtin_popcountll(votes), __ATOMIC_RELAXED,
                           __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  const int total = counted;
  __syncthreads();
  return total;
}
TL_DEVICE int syncthreads_or(int predicate) { return syncthreads_count(predicate) > 0; }
TL_DEVICE int syncthreads_and(int predicate) { return syncthreads_count(!predicate) == 0; }

}  // namespace tl
