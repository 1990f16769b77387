// wgmma.mma_async (PTX ISA, Asynchronous warpgroup level matrix instructions). Nothing is computed
// until the warp group waits: accumulators and shared operands are read then, and not before.
//
//   D: value i of thread t holds row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 mod 2), column
//      8 (i / 4) + 2 (t % 4) + i mod 2. A in registers is that of mma.sync, 16 rows a warp.
// Shared operands follow their descriptor (PTX ISA, Strides): 16-byte pieces, swizzled by address.
#include <string.h>

#include <deque>
#include <memory>

#include "block.h"
#include "check.h"
#include "elements.h"
#include "locals.h"
#include "tensor_sum.h"

namespace tl::emulator {

namespace {

constexpr int group_threads = 128;

struct Operation {
  Wgmma what;
  void* d[group_threads];
  uint32_t a[group_threads][4];
  const void* a_of[group_threads];
  void (*run)(const Operation&);
  size_t d_bytes;
  Mark work;
  int line;
};

struct Group {
  int came = 0;
  std::vector<Fiber*> waiting;
  const char* doing = nullptr;
  Operation next;
  std::vector<Operation> open;
  std::deque<std::vector<Operation>> closed;
  int engine = -1;
};
std::vector<std::unique_ptr<Group>> groups;

uintptr_t swizzled(uintptr_t address, int swizzle) {
  const uintptr_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

// Where element (row, step) of an operand lies; `row` counts m or n, `step` counts k.
const void* element(const void* start, const MatrixLayout& layout, int row, int step, int bytes) {
  const int piece = 16 / bytes, span = layout.swizzle == 0 ? 16 : layout.swizzle;
  long offset;
  if (layout.major == 0) {
    offset = row / 8 * long(layout.stride) + row % 8 * span;
    offset += layout.swizzle == 0 ? step / piece * long(layout.leading) + step % piece * bytes
                                  : step * bytes;
  } else {
    const int across = span / bytes;  // elements of m or n in one row of an atom
    const long by_row = layout.swizzle == 0 ? layout.stride : layout.leading;
    const long by_step = layout.swizzle == 0 ? layout.leading : layout.stride;
    offset = row / across * by_row + row % across * bytes + step % 8 * span + step / 8 * by_step;
  }
  return reinterpret_cast<const void*>(
      swizzled(reinterpret_cast<uintptr_t>(start) + uintptr_t(offset), layout.swizzle));
}

template <int k, class D, class A, class B>
void multiply(const Operation& operation) {
  using number = typename D::number;
  const Wgmma& what = operation.what;
  constexpr int m = 64, per_word = 32 / A::bits, bytes = A::bits / 8;
  static number a[m][k], b[k][256], d[m][256];
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step) {
      if (!what.a_in_registers) {
        a[row][step] = number(A::get(element(what.a, what.a_layout, row, step, bytes), 0));
        continue;
      }
      const int word = step / (4 * per_word) * 2 + row % 16 / 8;
      const int thread = row / 16 * 32 + row % 8 * 4 + step / per_word % 4;
      a[row][step] = number(A::get(&operation.a[thread][word], step % per_word));
    }
  for (int column = 0; column < what.n; ++column)
    for (int step = 0; step < k; ++step)
      b[step][column] = number(B::get(element(what.b, what.b_layout, column, step, bytes), 0));
  for (int thread = 0; thread < group_threads; ++thread)
    for (int i = 0; i < what.n / 2; ++i)
      d[16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2)]
       [8 * (i / 4) + 2 * (thread % 4) + i % 2] =
           what.scale_d == 0 ? number(0) : number(D::get(operation.d[thread], i));
  add_products<D, A, B, true>(a, b, d, what.n);
  for (int thread = 0; thread < group_threads; ++thread)
    for (int i = 0; i < what.n / 2; ++i)
      D::put(operation.d[thread], i,
             d[16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2)]
              [8 * (i / 4) + 2 * (thread % 4) + i % 2]);
}

// Reads of shared operands, told to the checks where the instruction is issued, in pieces of 16
// bytes.
void touch_operand(const View& view, const void* start, const MatrixLayout& layout, int rows, int k,
                   int bytes, Mark work) {
  const int piece = 16 / bytes, by_row = layout.major == 0 ? 1 : piece;
  const int by_step = layout.major == 0 ? piece : 1;
  for (int row = 0; row < rows; row += by_row)
    for (int step = 0; step < k; step += by_step)
      engine_reads_shared(*block.running, view, element(start, layout, row, step, bytes), 16, work);
}

std::vector<const Fiber*> members() {
  const size_t first = size_t(block.running->number / group_threads * group_threads);
  return {block.fibers.begin() + long(first), block.fibers.begin() + long(first) + group_threads};
}

// Registers of the operation, of each thread: whether they hold values, which a fence let go, and
// whose they are until the wait.
void hold_registers(const Operation& operation) {
  const Site site = Site::at_line(operation.line);
  for (const Fiber* fiber : members()) {
    const int thread = fiber->number % group_threads;
    auto& held = block.fibers[size_t(fiber->number)]->held;
    const void *d = operation.d[thread], *a = operation.a_of[thread];
    bool is_fenced = true;
    if (operation.what.scale_d != 0) {
      take_local(*fiber, d, operation.d_bytes, site);
      is_fenced = is_fenced_local(*fiber, d, operation.d_bytes);
    }
    if (operation.what.a_in_registers) {
      take_local(*fiber, a, 16, site);
      is_fenced = is_fenced && is_fenced_local(*fiber, a, 16);
      held.push_back({static_cast<const unsigned char*>(a), 16, false, operation.line});
    }
    held.push_back({static_cast<const unsigned char*>(d), operation.d_bytes, true, operation.line});
    give_local(*fiber, d, operation.d_bytes);
    if (!is_fenced)
      Report("unfenced", site, fiber).text("what", "registers").send();
  }
}

void finish(const Operation& operation) {
  operation.run(operation);
  if (!checking()) return;
  for (const Fiber* fiber : members()) {
    finish_work(operation.work.actor, operation.work.clock, *fiber);
    auto& held = block.fibers[size_t(fiber->number)]->held;
    held.erase(held.begin(), held.begin() + (operation.what.a_in_registers ? 2 : 1));
  }
}

// All threads of a warp group meet; the last one runs `finish`.
template <class F>
void together(const char* doing, int line, F finish) {
  settle_suspect();
  Fiber* me = block.running;
  const size_t number = size_t(me->number / group_threads);
  while (groups.size() <= number) groups.push_back(std::make_unique<Group>());
  Group& group = *groups[number];
  if (group.came > 0 && strcmp(group.doing, doing) != 0) {
    Report report("divergence", Site::at_line(line), me);
    report.text("text", std::string(doing) + " with threads that are at " + group.doing).send();
    abandon_block();
  }
  group.doing = doing;
  if (++group.came < group_threads) {
    group.waiting.push_back(me);
    return suspend(doing, line);
  }
  finish(group);
  group.came = 0;
  std::vector<Fiber*> released;
  released.swap(group.waiting);
  for (Fiber* fiber : released) make_ready(fiber);
}

void issue(const Wgmma& what, int k, int bytes, int d_bits, void (*run)(const Operation&),
           const char* name, int line) {
  const size_t number = size_t(block.running->number / group_threads);
  while (groups.size() <= number) groups.push_back(std::make_unique<Group>());
  Operation& next = groups[number]->next;
  const int thread = block.running->number % group_threads;
  next.d[thread] = what.d;
  next.a_of[thread] = what.a;
  if (what.a_in_registers) memcpy(next.a[thread], what.a, 16);
  together(name, line, [&](Group& group) {
    group.next.what = what;
    group.next.run = run;
    group.next.line = line;
    group.next.d_bytes = size_t(what.n / 2 * d_bits / 8);
    if (checking()) {
      const View view = view_of(members());
      if (group.engine < 0) group.engine = new_engine(block.running->number);
      group.next.work = begin_work(group.engine, Site::at_line(line));
      if (!what.a_in_registers)
        touch_operand(view, what.a, what.a_layout, 64, k, bytes, group.next.work);
      touch_operand(view, what.b, what.b_layout, what.n, k, bytes, group.next.work);
      hold_registers(group.next);
    }
    group.open.push_back(group.next);
  });
}

}  // namespace

void wgmma_fence(int) { fence_locals(*block.running); }

void wgmma_commit(int line) {
  together("wgmma.commit_group", line, [](Group& group) {
    group.closed.push_back(std::move(group.open));
    group.open.clear();
  });
}

void wgmma_wait(int count, int line) {
  together("wgmma.wait_group", line, [count](Group& group) {
    for (; group.closed.size() > size_t(count); group.closed.pop_front())
      for (const Operation& operation : group.closed.front()) finish(operation);
  });
}

void reset_wgmma() { groups.clear(); }

#define TL_WGMMA(suffix, k, D, A, B)                                           \
  void wgmma_##suffix(const Wgmma& what, int line) {                           \
    issue(what, k, A::bits / 8, D::bits, multiply<k, D, A, B>, "wgmma " #suffix, line); \
  }
#include <emulator/wgmma_rows.h>

}  // namespace tl::emulator
