// Checked mode: do blocks of one launch race for tensors, and is what a call returns read before it
// is written? Blocks run in several processes, which share what is remembered here.
//
// A word of a tensor remembers its last write and two blocks that read it since. A block knows of
// another one's work when a barrier of the grid lies between, or when it saw an atomic update (or a
// volatile value) of a thread that had fenced that work before. What a block knows all its threads
// know: rather a race that is missed than one that is none.
#pragma once
#include <stddef.h>

#include "check.h"
#include "memory.h"

namespace tl::emulator {

// Before the processes of the blocks are made. `is_fresh` says which regions hold nothing yet.
void make_between();
// Before each launch, in the process that makes the others.
void begin_launch(uint64_t blocks);
void begin_block_between(uint64_t number);

void touch_between(const Fiber& fiber, const void* place, size_t bytes, const Region& region,
                   Access access, Site site);
// What was written a moment ago is there now.
void settle_between();
// __threadfence.
void fence_device(const Fiber& fiber);

}  // namespace tl::emulator
