// Barriers of a block (PTX ISA, bar): all of it, or as many threads as are said, at one of sixteen.
#include <map>

#include "block.h"
#include "check.h"
#include "grid.h"
#include "report.h"
#include "traffic.h"

namespace tl::emulator {

namespace {

constexpr int barrier_limit = 16;

struct Meeting {
  std::vector<Fiber*> came;     // everybody who counts
  std::vector<Fiber*> waiting;  // those that wait: bar.arrive does not
  int count = 0;                // 0: all live threads of the block
  int line = 0;
  int holds = 0;  // in how many threads the predicate of bar.red held
  const Fiber* first = nullptr;
};
Meeting meetings[barrier_limit];
int last_count[barrier_limit];

bool is_complete(const Meeting& meeting) {
  const int needed = meeting.count == 0 ? block.live : meeting.count;
  return !meeting.came.empty() && int(meeting.came.size()) >= needed;
}

// Warps all of which waited.
void converge_warps(const std::vector<Fiber*>& waiting) {
  std::map<int, int> waiting_of, live_of;
  for (const Fiber* fiber : waiting) ++waiting_of[fiber->warp];
  for (const Fiber* fiber : block.fibers) live_of[fiber->warp] += !fiber->finished;
  for (const auto& [warp, count] : waiting_of)
    if (count == live_of[warp]) converge(warp);
}

// Everybody is here: `except` runs already.
void release(int id, const Fiber* except) {
  Meeting& meeting = meetings[id];
  last_count[id] = meeting.holds;
  if (int(meeting.came.size()) >= block.live && meeting.waiting.size() == meeting.came.size())
    order_block();
  else order_some(meeting.came, meeting.waiting);
  if (checking()) converge_warps(meeting.waiting);
  for (Fiber* fiber : meeting.waiting)
    if (fiber != except) make_ready(fiber);
  meeting = Meeting();
}

void reject(const char* kind, const std::string& text, int line) {
  Report report(kind, Site::at_line(line), block.running);
  report.text("text", text).send();
  abandon_block();
}

void check_same(Meeting& meeting, int id, int count, int line) {
  if (meeting.came.empty()) {
    meeting.count = count;
    meeting.line = line;
    meeting.first = block.running;
    return;
  }
  if (meeting.count != count) {
    reject("barrier",
           "barrier " + std::to_string(id) + " is for " + std::to_string(meeting.count) +
               " threads and for " + std::to_string(count) + " at once",
           line);
  }
  if (checking() && id == 0 && count == 0 && meeting.line != line) {
    Report report("divergence", Site::at_line(line), block.running);
    report.site("other_", Site::at_line(meeting.line)).thread("other_", meeting.first->number);
    report.text("text", "the barrier of the block").send();
  }
}

int meet(int id, int count, bool holds, bool waits, int line) {
  settle_suspect();
  if (id < 0 || id >= barrier_limit)
    reject("barrier", "there is no barrier " + std::to_string(id) + ": a block has 16", line);
  if (count < 0 || count % warp_lanes != 0)
    reject("barrier",
           "barrier " + std::to_string(id) + " is for " + std::to_string(count) +
               " threads, which is no number of whole warps",
           line);
  if (count > int(block.fibers.size()))
    reject("barrier",
           "barrier " + std::to_string(id) + " is for " + std::to_string(count) +
               " threads of a block that has " + std::to_string(block.fibers.size()),
           line);
  Meeting& meeting = meetings[id];
  Fiber* me = block.running;
  check_same(meeting, id, count, line);
  meeting.came.push_back(me);
  if (waits) meeting.waiting.push_back(me);
  meeting.holds += holds;
  if (is_complete(meeting)) {
    release(id, me);
  } else if (waits) {
    me->barrier_id = id;
    me->barrier_count = count;
    suspend("at a barrier", line);
    me->barrier_id = -1;
  }
  return last_count[id];
}

}  // namespace

void barrier(int id, int count, int line) { meet(id, count, false, true, line); }
void barrier_arrive(int id, int count, int line) { meet(id, count, false, false, line); }
int barrier_count(bool predicate, int line) { return meet(0, 0, predicate, true, line); }

void grid_barrier(int line) {
  barrier(0, 0, line);
  if (block.running->number == 0 && !wait_for_grid()) {
    Report report("deadlock", Site::at_line(line), block.running);
    report.text("text", "a block waits at the barrier of the grid, and another block has ended")
        .send();
    abandon_block();
  }
  barrier(0, 0, line);
}

void reset_barriers() {
  for (Meeting& meeting : meetings) meeting = Meeting();
}

// A thread that ended is waited for no more (CUDA programming guide: non-exited threads).
void barriers_lost(const Fiber&) {
  for (int id = 0; id < barrier_limit; ++id)
    if (meetings[id].count == 0 && is_complete(meetings[id])) release(id, nullptr);
}

std::string describe_wait(const Fiber& fiber) {
  std::string text = fiber.waits_for;
  if (fiber.barrier_id >= 0) {
    const Meeting& meeting = meetings[fiber.barrier_id];
    const int needed = meeting.count == 0 ? block.live : meeting.count;
    text = "at barrier " + std::to_string(fiber.barrier_id) + " for " +
           std::to_string(needed - int(meeting.came.size())) + " more of " +
           std::to_string(needed) + " threads";
  }
  if (fiber.mbarrier != nullptr) text = describe_mbarrier(fiber);
  return text + " (line " + std::to_string(fiber.waits_at) + " of the generated source)";
}

}  // namespace tl::emulator
