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

namespace tl::emulator {

namespace {

constexpr int group_threads = 128;

struct Operation {
  Wgmma what;
  void* d[group_threads];
  uint32_t a[group_threads][4];
  void (*run)(const Operation&);
};

struct Group {
  int came = 0;
  std::vector<Fiber*> waiting;
  const char* doing = nullptr;
  Operation next;
  std::vector<Operation> open;
  std::deque<std::vector<Operation>> closed;
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
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step)
      for (int column = 0; column < what.n; ++column)
        d[row][column] += a[row][step] * b[step][column];
  for (int thread = 0; thread < group_threads; ++thread)
    for (int i = 0; i < what.n / 2; ++i)
      D::put(operation.d[thread], i,
             d[16 * (thread / 32) + thread % 32 / 4 + 8 * (i / 2 % 2)]
              [8 * (i / 4) + 2 * (thread % 4) + i % 2]);
}

// Reads of shared operands, told to the checks where the instruction is issued.
void touch_operand(const void* start, const MatrixLayout& layout, int rows, int k, int bytes,
                   Site site) {
  if (!checking()) return;
  for (int row = 0; row < rows; ++row)
    for (int step = 0; step < k; ++step)
      touch_shared(*block.running, element(start, layout, row, step, bytes), size_t(bytes),
                   Access::read, site);
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

void issue(const Wgmma& what, int k, int bytes, void (*run)(const Operation&), const char* name,
           int line) {
  const size_t number = size_t(block.running->number / group_threads);
  while (groups.size() <= number) groups.push_back(std::make_unique<Group>());
  Operation& next = groups[number]->next;
  const int thread = block.running->number % group_threads;
  next.d[thread] = what.d;
  if (what.a_in_registers) memcpy(next.a[thread], what.a, 16);
  together(name, line, [&](Group& group) {
    group.next.what = what;
    group.next.run = run;
    if (!what.a_in_registers)
      touch_operand(what.a, what.a_layout, 64, k, bytes, Site::at_line(line));
    touch_operand(what.b, what.b_layout, what.n, k, bytes, Site::at_line(line));
    group.open.push_back(group.next);
  });
}

}  // namespace

void wgmma_commit(int line) {
  together("wgmma.commit_group", line, [](Group& group) {
    group.closed.push_back(std::move(group.open));
    group.open.clear();
  });
}

void wgmma_wait(int count, int line) {
  together("wgmma.wait_group", line, [count](Group& group) {
    for (; group.closed.size() > size_t(count); group.closed.pop_front())
      for (const Operation& operation : group.closed.front()) operation.run(operation);
  });
}

void reset_wgmma() { groups.clear(); }

#define TL_WGMMA(suffix, k, D, A, B)                                           \
  void wgmma_##suffix(const Wgmma& what, int line) {                           \
    issue(what, k, A::bits / 8, multiply<k, D, A, B>, "wgmma " #suffix, line); \
  }
#include <emulator/wgmma_rows.h>

}  // namespace tl::emulator
