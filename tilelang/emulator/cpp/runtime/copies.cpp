// cp.async: nothing has arrived until the thread that asked waits for the group (PTX ISA,
// cp.async.wait_group), and then all of it has. Until then the destination holds nonsense, which
// for floats is NaN, so that whoever reads too early gets caught even without checks.
#include <string.h>

#include "block.h"
#include "check.h"
#include "traffic.h"

namespace tl::emulator {

void copy_async(uint32_t address, const void* from, int bytes, int size, int line) {
  Fiber& me = *block.running;
  const Site site = Site::at_line(line);
  auto* to = static_cast<unsigned char*>(shared_pointer(address));
  const size_t n = size_t(bytes);
  if (reinterpret_cast<uintptr_t>(to) % n != 0)
    report_misaligned(me, to, n, Access::write, site, n);
  if (size > 0 && reinterpret_cast<uintptr_t>(from) % n != 0)
    report_misaligned(me, from, n, Access::read, site, n);
  if (size > 0) touch(me, from, size_t(size), Access::read, site);
  if (size > 0) count_access(me, from, size_t(size), Access::read, site);
  begin_flight(me, to, n, site);
  count_access(me, to, n, Access::write, site);
  memset(to, 0xff, n);
  me.open_group.push_back({to, from, bytes, size, line});
}

void copy_async_commit() {
  Fiber& me = *block.running;
  me.groups.push_back(std::move(me.open_group));
  me.open_group.clear();
}

void copy_async_wait(int groups, int) {
  Fiber& me = *block.running;
  while (me.groups.size() > size_t(groups)) {
    for (const PendingCopy& copy : me.groups.front()) {
      memcpy(copy.to, copy.from, size_t(copy.size));
      memset(copy.to + copy.size, 0, size_t(copy.bytes - copy.size));
      const Site site = Site::at_line(copy.line);
      end_flight(me, copy.to, size_t(copy.bytes), site, mark_of(me, site));
    }
    me.groups.erase(me.groups.begin());
  }
}

}  // namespace tl::emulator
