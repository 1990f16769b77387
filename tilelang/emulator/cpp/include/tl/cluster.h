// Registers of warp groups and dependent launches, which change nothing here. Clusters of blocks
// are refused before anything is compiled.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void pdl_sync() {}
TL_DEVICE void pdl_trigger() {}
template <int registers, int raises>
TL_DEVICE void set_max_nreg() {}

}  // namespace tl
