// Checked mode: what is in the arrays of a thread, which on a GPU are registers. The kernel declares
// each (source.py), from where on it holds nothing.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "report.h"

namespace tl::emulator {

void begin_locals(Fiber& fiber);
// Accesses of memory of the stack, by the kernel.
void touch_local(const Fiber& fiber, const void* place, size_t bytes, bool writes, Site site);
// An instruction, in the lane that `fiber` is, takes values from an array, or leaves some there.
void take_local(const Fiber& fiber, const void* place, size_t bytes, Site site);
void give_local(const Fiber& fiber, const void* place, size_t bytes);
// wgmma.fence: what the thread wrote to its arrays may be used by matrix instructions, and whether
// that is so.
void fence_locals(const Fiber& fiber);
bool is_fenced_local(const Fiber& fiber, const void* place, size_t bytes);

}  // namespace tl::emulator
