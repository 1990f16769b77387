// Which thread runs next, from the first of a block to its last.
#include "block.h"

#include <algorithm>
#include <map>

#include "between.h"
#include "check.h"
#include "fiber.h"
#include "locals.h"
#include "memory.h"
#include "report.h"
#include "traffic.h"

namespace tl::emulator {

Context* current;
Block block;

namespace {

// The ready threads; a ring, large enough for all of a block.
constexpr unsigned ring_size = 4096;
Fiber* ring[ring_size];
unsigned first, count;
uint64_t seed, random_state;
void* main_stack;
const Launch* running_launch;
std::vector<Fiber*> pool;

unsigned random_below(unsigned limit) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return unsigned((random_state >> 33) % limit);
}

Fiber* take_ready() {
  if (seed != 0)
    std::swap(ring[first % ring_size], ring[(first + random_below(count)) % ring_size]);
  --count;
  return ring[first++ % ring_size];
}

void switch_to(Fiber* next) {
  Fiber* from = block.running;
  if (next == from) return;
  block.running = next;
  current = next == nullptr ? nullptr : &next->context;
  switch_stack(from == nullptr ? &main_stack : &from->stack_pointer,
               next == nullptr ? main_stack : next->stack_pointer);
}

// Nobody can go on: says who waits for what.
void report_deadlock() {
  std::map<std::string, std::pair<int, const Fiber*>> waiting;
  for (const Fiber* fiber : block.fibers) {
    if (fiber->finished) continue;
    auto& group = waiting[describe_wait(*fiber)];
    if (group.first++ == 0) group.second = fiber;
  }
  const int finished = int(block.fibers.size()) - block.live;
  Report report("deadlock", Site::at_line(waiting.begin()->second.second->waits_at),
                waiting.begin()->second.second);
  std::string text;
  for (const auto& [what, group] : waiting) {
    if (!text.empty()) text += "; ";
    text += std::to_string(group.first) + (group.first == 1 ? " thread waits " : " threads wait ") +
            what;
  }
  if (finished > 0) text += "; " + std::to_string(finished) + " have ended";
  report.text("text", text);
  int index = 0;
  for (const auto& [what, group] : waiting) {
    if (index++ == 1) report.site("other_", Site::at_line(group.second->waits_at));
  }
  report.send();
}

void run_next() {
  // Copies arrive as late as can be; in a shuffled order also earlier.
  if (seed != 0 && random_below(4) == 0) advance_bulk();
  while (count == 0 && advance_bulk()) {
  }
  if (count > 0) return switch_to(take_ready());
  if (block.live > 0) {
    report_deadlock();
    block.failed = true;
  }
  switch_to(nullptr);
}

void thread_main() {
  running_launch->entry(running_launch->arguments.data());
  Fiber* me = block.running;
  me->finished = true;
  --block.live;
  settle_suspect();
  barriers_lost(*me);
  warps_lost(*me);
  run_next();
  __builtin_unreachable();
}

void prepare(Fiber& fiber, int number, const Launch& launch, Index index) {
  const Index size = launch.block;
  const unsigned n = unsigned(number);
  fiber.number = number;
  fiber.warp = number / warp_lanes;
  fiber.lane = number % warp_lanes;
  fiber.finished = false;
  fiber.barrier_id = -1;
  fiber.mbarrier = nullptr;
  fiber.stores.clear();
  fiber.store_engine = -1;
  fiber.held.clear();
  begin_locals(fiber);
  fiber.open_stores.clear();
  fiber.open_group.clear();
  fiber.groups.clear();
  fiber.context = {
      {n % size.x, n / size.x % size.y, n / (size.x * size.y)}, index, size, launch.grid, arena()};
  fiber.stack_pointer = prepare_stack(fiber.stack, thread_main);
}

}  // namespace

void set_schedule(uint64_t chosen) { seed = chosen; }
uint64_t schedule() { return seed; }

bool run_block(const Launch& launch, Index index) {
  const int threads = int(launch.threads());
  while (int(pool.size()) < threads) {
    pool.push_back(new Fiber);
    pool.back()->stack = make_stack(int(pool.size()));
  }
  block.fibers.assign(pool.begin(), pool.begin() + threads);
  block.live = threads;
  block.failed = false;
  block.running = nullptr;
  running_launch = &launch;
  random_state = seed * 0x9e3779b97f4a7c15ull + index.x + 7919ull * (index.y + 7919ull * index.z);
  first = count = 0;
  reset_barriers();
  reset_mbarriers();
  reset_bulk();
  reset_wgmma();
  reset_warps((threads + warp_lanes - 1) / warp_lanes);
  forget_shared_memory();
  begin_block_check(threads);
  begin_block_between(index.x +
                      uint64_t(launch.grid.x) * (index.y + uint64_t(launch.grid.y) * index.z));
  for (int i = 0; i < threads; ++i) {
    prepare(*block.fibers[size_t(i)], i, launch, index);
    make_ready(block.fibers[size_t(i)]);
  }
  begin_traffic(threads);
  run_next();
  converge_all();
  if (!block.failed) finish_bulk();
  return !block.failed;
}

void make_ready(Fiber* fiber) { ring[(first + count++) % ring_size] = fiber; }

void suspend(const char* waits_for, int line) {
  settle_suspect();
  block.running->waits_for = waits_for;
  block.running->waits_at = line;
  run_next();
}

void yield(int line) {
  make_ready(block.running);
  suspend("for its turn", line);
}

void memory_fence(int line) {
  fence_device(*block.running);
  yield(line);
}

void abandon_block() {
  block.failed = true;
  switch_to(nullptr);
  __builtin_unreachable();
}

void refuse(const char* what, int line) {
  Report("refused", Site::at_line(line), block.running).text("text", what).send();
  abandon_block();
}

void trap(int line) {
  Report("trap", Site::at_line(line), block.running).send();
  abandon_block();
}

}  // namespace tl::emulator

extern "C" void __assertfail(const char* message, const char* file, unsigned line, const char*,
                             size_t) {
  using namespace tl::emulator;
  Report report("assertion", Site::at_line(0), block.running);
  report.text("text", message).text("file", file).number("at", line).send();
  abandon_block();
}
