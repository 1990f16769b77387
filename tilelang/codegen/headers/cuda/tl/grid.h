// The barrier of a whole grid. The launch has to be cooperative: the driver then passes a zeroed
// workspace, whose address it leaves in %envreg1 and %envreg2 and whose second word is the counter.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_grid() {
  __syncthreads();
  if (thread_number() == 0) {
    uint32 low, high, seen, before;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    auto* counter = reinterpret_cast<uint32*>((uint64(high) << 32) | low) + 1;
    // One block adds what the others lack to 2^31: the top bit flips when the last one arrives.
    const uint32 others = gridDim.x * gridDim.y * gridDim.z - 1;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    const uint32 amount = first ? 0x80000000u - others : 1u;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(amount) : "memory");
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (((before ^ seen) & 0x80000000u) == 0);
  }
  __syncthreads();
}

}  // namespace tl
