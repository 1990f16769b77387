// What is ordered within a block: who knows of whose work.
//
// Threads have numbers from 0 on; behind them come engines, which work beside the threads: a warp
// group's matrix unit, a thread's bulk stores, the loads an mbarrier waits for. Two accesses of
// threads are in order when a barrier of the whole block lies between (an older `epoch`), or a
// chain of other barriers (vector clocks). What an engine did is known to whoever waited for it, and
// to those who hear of it from there.
#pragma once
#include <stdint.h>

#include <vector>

#include "report.h"

namespace tl::emulator {

struct Fiber;

// One access, by a thread or an engine.
struct Mark {
  uint32_t epoch = 0, clock = 0;
  Site site;
  uint16_t actor = 0;
};

void enable_check();
bool checking();
void begin_order(int threads);
uint32_t this_epoch();
// The epoch in which the block began: older marks are of other blocks.
uint32_t first_epoch();

// All threads of the block waited for each other.
void order_block();
// What those who `came` did lies before what those who `waited` do next.
void order_some(const std::vector<Fiber*>& came, const std::vector<Fiber*>& waited);

// What somebody knew at some moment, kept for whoever waits for it: an mbarrier, a bulk copy.
struct Knowledge {
  uint32_t epoch = 0;
  std::vector<uint32_t> clocks, engines, fenced;
};
// Adds what `fiber` did so far.
void publish(Knowledge& to, const Fiber& fiber);
void add(Knowledge& to, const Knowledge& what);
// What is known lies before what `fiber` does next.
void learn(const Fiber& fiber, const Knowledge& what);

// --- engines ---

// A new engine, for this block, that `owner` set to work first; past the most there can be, the
// last one again.
int new_engine(int owner);
bool is_engine(const Mark& mark);
// A piece of work of an engine, which nobody knows to be done yet.
Mark begin_work(int engine, Site site);
// All its work up to a clock is done, and `fiber` knows it; or whoever gets `to`.
void finish_work(int actor, uint32_t clock, const Fiber& fiber);
void finish_work(int actor, uint32_t clock, Knowledge& to);
bool is_done(const Mark& mark);
// The thread to name in a report.
int thread_of(const Mark& mark);

// fence.proxy.async: what `fiber` knows of may be read by engines, for whoever hears of it.
void fence_proxy(const Fiber& fiber);

// --- who looks ---

Mark mark_of(const Fiber& fiber, Site site);
// Whether what `mark` stands for lies before what a thread does now.
bool is_before(const Mark& mark, int thread);

// What a thread, or a warp group together, knows when it sets an engine to work.
struct View {
  std::vector<uint32_t> clocks, engines, fenced;
};
View view_of(const Fiber& fiber);
// Of each warp what any lane of it knows, and of that what all warps do; a fence of any thread.
View view_of(const std::vector<const Fiber*>& group);
bool is_before(const Mark& mark, const View& view);
// Whether an engine may read what an ordinary write left.
bool is_fenced(const Mark& mark, const View& view);

// --- steps, for what other blocks may know (between.h) ---

// How often threads of this block have waited for each other.
uint32_t this_step();
// What happens from here on is in a step of its own.
void next_step();
// The step in which a thread last heard of others.
uint32_t heard_at(int thread);

}  // namespace tl::emulator
