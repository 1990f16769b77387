#include "mbarrier.h"

#include <unordered_map>

#include "block.h"
#include "memory.h"
#include "report.h"

namespace tl::emulator {

namespace {

struct Waiter {
  Fiber* fiber;
  int parity;
};

struct Barrier {
  int count = 0, pending = 0;
  long bytes = 0;
  uint32_t phase = 0;
  Knowledge open, done;  // of this phase, and of those that are over
  std::vector<Waiter> waiting;
  Mark made;        // its initialisation
  int engine = -1;  // of the loads that tell it
};

// The memory of a barrier only gives it a name.
std::unordered_map<void*, Barrier> barriers;

[[noreturn]] void reject(const std::string& text, int line) {
  Report report("barrier", Site::at_line(line), block.running);
  report.text("text", text).send();
  abandon_block();
}

Barrier& find(void* place, int line) {
  settle_suspect();
  if (shared_offset(place, 8) < 0)
    report_not_shared(*block.running, place, 8, Access::atomic, Site::at_line(line));
  const auto found = barriers.find(place);
  if (found == barriers.end()) reject("an mbarrier is used that nobody has initialised", line);
  const Fiber& me = *block.running;
  if (checking() && !is_before(found->second.made, me.number))
    report_race(me, Site::at_line(line), "use", found->second.made, "initialisation",
                {shared_offset(place, 8), nullptr});
  return found->second;
}

bool is_over(const Barrier& barrier, int parity) {
  return (barrier.phase & 1) != uint32_t(parity & 1);
}

void advance(Barrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  add(barrier.done, barrier.open);
  barrier.open = Knowledge();
  std::vector<Waiter> still;
  for (const Waiter& waiter : barrier.waiting) {
    if (!is_over(barrier, waiter.parity)) {
      still.push_back(waiter);
      continue;
    }
    learn(*waiter.fiber, barrier.done);
    make_ready(waiter.fiber);
  }
  barrier.waiting = still;
}

}  // namespace

void mbarrier_init(void* place, int count, int line) {
  settle_suspect();
  if (shared_offset(place, 8) < 0)
    report_not_shared(*block.running, place, 8, Access::write, Site::at_line(line));
  if (checking() && barriers.count(place) != 0)
    reject("an mbarrier is initialised that is in use already", line);
  Barrier made;
  made.count = made.pending = count;
  if (checking()) made.made = mark_of(*block.running, Site::at_line(line));
  barriers[place] = made;
}

void mbarrier_inval(void* place, int line) {
  find(place, line);
  barriers.erase(place);
}

void mbarrier_arrive(void* place, int arrivals, long bytes, int line) {
  Barrier& barrier = find(place, line);
  barrier.bytes += bytes;
  if (arrivals == 0) return;
  if (barrier.pending < arrivals)
    reject("an mbarrier for " + std::to_string(barrier.count) + " arrivals gets one more", line);
  publish(barrier.open, *block.running);
  barrier.pending -= arrivals;
  advance(barrier);
}

Mark begin_load(void* place, const View& view, int line) {
  Barrier& barrier = find(place, line);
  if (!checking()) return Mark();
  const Fiber& me = *block.running;
  must_be_fenced(me, view, barrier.made, "the initialisation of the mbarrier", Site::at_line(line));
  if (barrier.engine < 0) barrier.engine = new_engine(me.number);
  return begin_work(barrier.engine, Site::at_line(line));
}

void complete_bytes(void* place, long bytes, const Knowledge& of) {
  const auto found = barriers.find(place);
  if (found == barriers.end()) return;
  add(found->second.open, of);
  found->second.bytes -= bytes;
  advance(found->second);
}

void mbarrier_wait(void* place, int parity, int line) {
  Barrier& barrier = find(place, line);
  if (is_over(barrier, parity)) {
    learn(*block.running, barrier.done);
    return;
  }
  barrier.waiting.push_back({block.running, parity});
  block.running->mbarrier = place;
  block.running->parity = parity;
  suspend("at an mbarrier", line);
  block.running->mbarrier = nullptr;
}

// Here a thread's copies are done when it says so: it waits for them at once.
void copy_async_arrive(void* place, int line) {
  copy_async_commit();
  copy_async_wait(0, line);
  mbarrier_arrive(place, 1, 0, line);
}

void fence_proxy_async(int) {
  settle_suspect();
  fence_proxy(*block.running);
}

void reset_mbarriers() { barriers.clear(); }

std::string describe_mbarrier(const Fiber& fiber) {
  const Barrier& barrier = barriers[fiber.mbarrier];
  return "at an mbarrier for phase " + std::to_string(barrier.phase) + " (parity " +
         std::to_string(fiber.parity) + "), which lacks " + std::to_string(barrier.pending) +
         " of " + std::to_string(barrier.count) + " arrivals and " + std::to_string(barrier.bytes) +
         " bytes";
}

}  // namespace tl::emulator
