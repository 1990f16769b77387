// Assertions. Printing needs ROCm's library.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE void device_assert(bool condition, const char*, const char*, int) {
  if (!condition) __builtin_trap();
}

}  // namespace tl
