#include "order.h"

#include <string.h>

#include <algorithm>

#include "block.h"

namespace tl::emulator {

namespace {

constexpr int most_engines = 64;

bool enabled;
// Epochs go on through all blocks of a process, so that a new block has nothing to clear.
uint32_t epoch = 1, block_epoch = 1, step = 1;
int threads, engine_count;
// clocks[t][u]: up to which clock of thread u thread t knows everything, within this epoch; of
// older epochs it knows all, which ended at `epoch_start[u]`.
std::vector<uint32_t> clocks, row_epoch, own_clock, epoch_start, heard;
// The same of engines, and what is fenced of each thread; epochs do not end these. All threads know
// the common part.
std::vector<uint32_t> engines, fenced;
std::vector<uint32_t> common_engines, common_fenced;
std::vector<uint8_t> is_news;  // threads that know more than the common part
uint32_t begun[most_engines], done[most_engines];
int owners[most_engines];
bool any_fence;

uint32_t* row(int thread) {
  uint32_t* found = &clocks[size_t(thread) * size_t(threads)];
  if (row_epoch[size_t(thread)] != epoch) {
    memset(found, 0, sizeof(uint32_t) * size_t(threads));
    row_epoch[size_t(thread)] = epoch;
  }
  return found;
}
uint32_t* engine_row(int thread) { return &engines[size_t(thread) * most_engines]; }
uint32_t* fence_row(int thread) { return &fenced[size_t(thread) * size_t(threads)]; }

void raise(uint32_t* to, const uint32_t* from, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}
void raise(std::vector<uint32_t>& to, const uint32_t* from, size_t count) {
  if (to.size() < count) to.resize(count, 0);
  raise(to.data(), from, count);
}

size_t fences() { return any_fence ? size_t(threads) : 0; }

// What a thread knows, its own work included, which others then tell from later work.
Knowledge knowledge_of(int thread) {
  Knowledge mine;
  mine.epoch = epoch;
  mine.clocks.assign(row(thread), row(thread) + threads);
  mine.clocks[size_t(thread)] = own_clock[size_t(thread)]++;
  mine.engines.assign(engine_row(thread), engine_row(thread) + engine_count);
  mine.fenced.assign(fence_row(thread), fence_row(thread) + fences());
  return mine;
}

}  // namespace

void enable_check() { enabled = true; }
bool checking() { return enabled; }
uint32_t this_epoch() { return epoch; }
uint32_t first_epoch() { return block_epoch; }
uint32_t this_step() { return step; }
void next_step() { ++step; }
uint32_t heard_at(int thread) { return heard[size_t(thread)]; }

void begin_order(int count) {
  block_epoch = ++epoch;
  threads = count;
  engine_count = 0;
  any_fence = false;
  step = 1;
  const size_t n = size_t(count);
  clocks.resize(n * n);
  row_epoch.assign(n, 0);
  own_clock.assign(n, 1);
  epoch_start.assign(n, 0);
  heard.assign(n, 0);
  engines.assign(n * most_engines, 0);
  fenced.resize(n * n);
  common_engines.assign(most_engines, 0);
  common_fenced.assign(n, 0);
  is_news.assign(n, 0);
  std::fill(begun, begun + most_engines, 0);
  std::fill(done, done + most_engines, 0);
}

void order_block() {
  if (!enabled) return;
  for (int t = 0; t < threads; ++t) {
    epoch_start[size_t(t)] = own_clock[size_t(t)]++;
    heard[size_t(t)] = step + 1;
    if (!is_news[size_t(t)]) continue;
    is_news[size_t(t)] = 0;
    raise(common_engines.data(), engine_row(t), size_t(engine_count));
    raise(common_fenced.data(), fence_row(t), fences());
  }
  ++epoch;
  ++step;
}

void order_some(const std::vector<Fiber*>& came, const std::vector<Fiber*>& waited) {
  if (!enabled) return;
  Knowledge joined;
  for (const Fiber* fiber : came) add(joined, knowledge_of(fiber->number));
  ++step;
  for (const Fiber* fiber : waited) learn(*fiber, joined);
}

void publish(Knowledge& to, const Fiber& fiber) {
  if (enabled) add(to, knowledge_of(fiber.number));
}

void add(Knowledge& to, const Knowledge& what) {
  if (!enabled) return;
  raise(to.engines, what.engines.data(), what.engines.size());
  raise(to.fenced, what.fenced.data(), what.fenced.size());
  if (what.epoch < epoch) return;  // a barrier of the block said more since
  if (to.epoch < epoch) {
    to.epoch = epoch;
    to.clocks.assign(size_t(threads), 0);
  }
  raise(to.clocks, what.clocks.data(), what.clocks.size());
}

void learn(const Fiber& fiber, const Knowledge& what) {
  if (!enabled) return;
  const int me = fiber.number;
  heard[size_t(me)] = ++step;
  raise(engine_row(me), what.engines.data(), what.engines.size());
  raise(fence_row(me), what.fenced.data(), what.fenced.size());
  is_news[size_t(me)] = 1;
  if (what.epoch == epoch) raise(row(me), what.clocks.data(), what.clocks.size());
}

int new_engine(int owner) {
  if (engine_count < most_engines) owners[engine_count++] = owner;
  return engine_count - 1;
}

int thread_of(const Mark& mark) {
  return mark.actor >= threads ? owners[mark.actor - threads] : mark.actor;
}

bool is_engine(const Mark& mark) { return mark.actor >= threads; }

Mark begin_work(int engine, Site site) {
  return {epoch, ++begun[engine], site, uint16_t(threads + engine)};
}

void finish_work(int actor, uint32_t clock, const Fiber& fiber) {
  const int engine = actor - threads;
  done[engine] = std::max(done[engine], clock);
  uint32_t& known = engine_row(fiber.number)[engine];
  known = std::max(known, clock);
  is_news[size_t(fiber.number)] = 1;
}

void finish_work(int actor, uint32_t clock, Knowledge& to) {
  const int engine = actor - threads;
  done[engine] = std::max(done[engine], clock);
  if (to.engines.size() <= size_t(engine)) to.engines.resize(size_t(engine) + 1, 0);
  to.engines[size_t(engine)] = std::max(to.engines[size_t(engine)], clock);
}

bool is_done(const Mark& mark) { return done[mark.actor - threads] >= mark.clock; }

void fence_proxy(const Fiber& fiber) {
  if (!enabled) return;
  if (!any_fence) std::fill(fenced.begin(), fenced.end(), 0);
  any_fence = true;
  const int me = fiber.number;
  uint32_t* mine = fence_row(me);
  raise(mine, epoch_start.data(), size_t(threads));
  raise(mine, row(me), size_t(threads));
  mine[me] = own_clock[size_t(me)]++;
  is_news[size_t(me)] = 1;
}

Mark mark_of(const Fiber& fiber, Site site) {
  const uint32_t clock = own_clock.empty() ? 0 : own_clock[size_t(fiber.number)];  // unchecked: none
  return {epoch, clock, site, uint16_t(fiber.number)};
}

bool is_before(const Mark& mark, int thread) {
  if (mark.epoch < block_epoch) return true;
  if (mark.actor >= threads) {
    const int engine = mark.actor - threads;
    return engine_row(thread)[engine] >= mark.clock || common_engines[size_t(engine)] >= mark.clock;
  }
  if (mark.epoch < epoch || mark.actor == thread) return true;
  return row(thread)[mark.actor] >= mark.clock;
}

View view_of(const Fiber& fiber) { return view_of(std::vector<const Fiber*>{&fiber}); }

View view_of(const std::vector<const Fiber*>& group) {
  View view;
  view.engines = common_engines;
  view.fenced = common_fenced;
  for (size_t i = 0; i < group.size();) {
    std::vector<uint32_t> warp_clocks(size_t(threads), 0);
    std::vector<uint32_t> warp_engines = common_engines;
    for (const int warp = group[i]->warp; i < group.size() && group[i]->warp == warp; ++i) {
      const int me = group[i]->number;
      raise(warp_clocks.data(), row(me), size_t(threads));
      warp_clocks[size_t(me)] = own_clock[size_t(me)];
      raise(warp_engines.data(), engine_row(me), size_t(engine_count));
      raise(view.fenced.data(), fence_row(me), fences());
    }
    if (view.clocks.empty()) {
      view.clocks = warp_clocks;
      view.engines = warp_engines;
      continue;
    }
    for (size_t u = 0; u < view.clocks.size(); ++u)
      view.clocks[u] = std::min(view.clocks[u], warp_clocks[u]);
    for (size_t e = 0; e < view.engines.size(); ++e)
      view.engines[e] = std::min(view.engines[e], warp_engines[e]);
  }
  return view;
}

bool is_before(const Mark& mark, const View& view) {
  if (mark.epoch < block_epoch) return true;
  if (mark.actor >= threads) return view.engines[size_t(mark.actor - threads)] >= mark.clock;
  return mark.epoch < epoch || view.clocks[mark.actor] >= mark.clock;
}

bool is_fenced(const Mark& mark, const View& view) {
  return mark.epoch < block_epoch || mark.actor >= threads ||
         view.fenced[mark.actor] >= mark.clock;
}

}  // namespace tl::emulator
