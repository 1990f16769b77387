// Checked mode: which threads and engines touched which byte of shared memory, and of tensors that
// are written, and were they ordered (order.h)? A byte remembers its last write, the first and the
// last read since, and who of the engines reads it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "order.h"
#include "report.h"

namespace tl::emulator {

struct Region;

// `atomic_read` is a volatile one, or any that only looks.
// `exchange` is an atomic update that keeps the bits it is not about, whatever they are.
enum class Access : uint8_t { read, write, atomic, exchange, atomic_read };

void begin_block_check(int threads);

// An access of the code of a kernel, before it happens. Ends the block when it is outside of all
// memory. Nothing in plain mode, except for `must_be_shared`.
void touch(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site);
// The same, of an instruction that only knows shared memory: outside is an error in plain mode too.
void touch_shared(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site);
// The destination of an asynchronous copy: under way from its issue to its wait.
void begin_flight(const Fiber& fiber, const void* place, size_t bytes, Site site);
void end_flight(const Fiber& fiber, const void* place, size_t bytes, Site issued, Mark landed);
// Two writes of one value are no mistake: decided when the second one has happened.
void settle_suspect();

// An engine that `fiber`, which knows `view`, sets to work, reads shared memory from now until
// `work` is done.
void engine_reads_shared(const Fiber& fiber, const View& view, const void* place, size_t bytes,
                         Mark work);
// It reads a tensor.
void engine_reads(const Fiber& fiber, const View& view, const void* place, size_t bytes, Site site);
// An engine that uses what only threads may have written so far: an mbarrier.
void must_be_fenced(const Fiber& fiber, const View& view, Mark written, const char* what,
                    Site site);

// What a report says of a place: a byte of shared memory, or of a tensor.
struct Spot {
  long offset;
  const Region* region;  // null: shared memory
};
void tell(Report& report, Spot spot);
void report_race(const Fiber& fiber, Site site, const char* access, const Mark& other,
                 const char* other_access, Spot spot);
const char* word(Access access);
inline bool is_update(Access access) {
  return access == Access::atomic || access == Access::exchange;
}
inline bool is_write(Access access) { return access == Access::write || is_update(access); }

[[noreturn]] void report_outside(const Fiber& fiber, const void* place, size_t bytes, Access access,
                                 Site site);
[[noreturn]] void report_not_shared(const Fiber& fiber, const void* place, size_t bytes,
                                    Access access, Site site);
[[noreturn]] void report_misaligned(const Fiber& fiber, const void* place, size_t bytes,
                                    Access access, Site site, size_t alignment);

}  // namespace tl::emulator
