// Barriers of a threadgroup.
#pragma once
#include <tl/common.h>

namespace tl {

TL_INLINE void sync_threads() {
  metal::threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
}

}  // namespace tl
