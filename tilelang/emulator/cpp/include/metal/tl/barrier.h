// Barriers of a threadgroup, with the line of the kernel that waits.
#pragma once
#include <tl/common.h>

namespace tl {

TL_INLINE void sync_threads(TL_HERE) {
  metal::threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup,
                             line);
}

}  // namespace tl
