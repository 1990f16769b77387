// Checked mode: which threads touched which byte of shared memory, and of tensors that are written,
// and were they ordered? Blocks are looked at one by one: races between blocks are not seen.
//
// A byte remembers its last write and two reads since. An access is in order with another one of
// the same block when a barrier of the whole block lies between (its `epoch` is older), or a chain
// of partial barriers and warp barriers leads from one to the other (vector clocks).
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "report.h"

namespace tl::emulator {

struct Fiber;

enum class Access : uint8_t { read, write, atomic };

void enable_check();
bool checking();
void begin_block_check(int threads);

// All threads of the block waited for each other.
void order_block();
// What those who `came` did lies before what those who `waited` do next.
void order_some(const std::vector<Fiber*>& came, const std::vector<Fiber*>& waited);

// What somebody knew at some moment, kept for whoever waits for it: an mbarrier, a bulk copy.
struct Knowledge {
  uint32_t epoch = 0;
  std::vector<uint32_t> clocks;
};
// Adds what `fiber` did so far.
void publish(Knowledge& to, const Fiber& fiber);
void add(Knowledge& to, const Knowledge& what);
// What is known lies before what `fiber` does next.
void learn(const Fiber& fiber, const Knowledge& what);

// An access of the code of a kernel, before it happens. Ends the block when it is outside of all
// memory. Nothing in plain mode, except for `must_be_shared`.
void touch(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site);
// The same, of an instruction that only knows shared memory: outside is an error in plain mode too.
void touch_shared(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site);
// The destination of a cp.async: under way from its issue to its wait.
void begin_flight(const Fiber& fiber, const void* place, size_t bytes, Site site);
void end_flight(const Fiber& fiber, const void* place, size_t bytes, Site site);
// Two writes of one value are no mistake: decided when the second one has happened.
void settle_suspect();

[[noreturn]] void report_outside(const Fiber& fiber, const void* place, size_t bytes, Access access,
                                 Site site);
[[noreturn]] void report_not_shared(const Fiber& fiber, const void* place, size_t bytes,
                                    Access access, Site site);
[[noreturn]] void report_misaligned(const Fiber& fiber, const void* place, size_t bytes,
                                    Access access, Site site, size_t alignment);

}  // namespace tl::emulator
