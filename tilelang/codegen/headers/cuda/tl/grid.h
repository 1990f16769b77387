// The barrier of a whole grid; the launch has to be cooperative.
#pragma once
#include <cooperative_groups.h>

#include <tl/common.h>

namespace tl {

TL_DEVICE void sync_grid() { cooperative_groups::this_grid().sync(); }

}  // namespace tl
