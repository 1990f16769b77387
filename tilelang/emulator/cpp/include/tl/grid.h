// The barrier of a whole grid.
#pragma once
#include <tl/common.h>

namespace tl {
TL_DEVICE void sync_grid(TL_HERE) { emulator::grid_barrier(line); }
}  // namespace tl
