#include "locals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "block.h"
#include "check.h"
#include "fiber.h"

namespace tl::emulator {

namespace {

struct Array {
  const unsigned char* start;
  size_t bytes;
  const char* name;
};

// A byte of the stack: not of an array, without a value, with one, or with one that was written
// after so many fences.
constexpr uint8_t foreign = 0, empty = 1, full = 2, recent = 3;
constexpr unsigned counted_fences = 200;

struct Locals {
  std::vector<Array> arrays;
  uint8_t* states = nullptr;
  unsigned fences = 0;
};
std::vector<Locals> all;

Locals& of(const Fiber& fiber) { return all[size_t(fiber.number)]; }

uint8_t* state_of(const Fiber& fiber, const void* place) {
  return of(fiber).states + (static_cast<const char*>(place) - fiber.stack);
}

bool is_local(const Fiber& fiber, const void* place, size_t bytes) {
  const size_t at = size_t(static_cast<const char*>(place) - fiber.stack);
  return at < stack_bytes && at + bytes <= stack_bytes;
}

uint8_t written_now(const Fiber& fiber) {
  return uint8_t(recent + of(fiber).fences % counted_fences);
}

const Array* array_at(const Fiber& fiber, const void* place) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (const Array& array : of(fiber).arrays)
    if (size_t(at - array.start) < array.bytes) return &array;
  return nullptr;
}

void report_empty(const Fiber& fiber, const void* place, size_t bytes, const uint8_t* state,
                  Site site) {
  const size_t first = size_t(std::find(state, state + bytes, empty) - state);
  const auto* at = static_cast<const unsigned char*>(place) + first;
  const Array* array = array_at(fiber, at);
  if (array == nullptr) return;
  Report report("uninitialised", site, &fiber);
  report.text("array", array->name).number("offset", at - array->start).send();
}

// Work of a matrix unit that has yet to be waited for owns its registers.
void check_held(const Fiber& fiber, const void* place, size_t bytes, bool writes, Site site) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (const HeldRegisters& held : fiber.held) {
    if (at >= held.start + held.bytes || at + bytes <= held.start) continue;
    if (!writes && !held.is_written) continue;
    Report report("held", site, &fiber);
    report.site("other_", Site::at_line(held.line));
    const Array* array = array_at(fiber, at);
    if (array != nullptr) report.text("array", array->name);
    report.text("access", writes ? "write" : "read").send();
    return;
  }
}

}  // namespace

void begin_locals(Fiber& fiber) {
  if (!checking()) return;
  if (all.size() <= size_t(fiber.number)) all.resize(size_t(fiber.number) + 1);
  Locals& mine = of(fiber);
  if (mine.states == nullptr) {
    void* made = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
      perror("no memory to look after the variables of a thread");
      exit(4);
    }
    mine.states = static_cast<uint8_t*>(made);
  }
  for (const Array& array : mine.arrays) memset(state_of(fiber, array.start), foreign, array.bytes);
  mine.arrays.clear();
  mine.fences = 0;
}

void declare_local(const void* place, size_t bytes, const char* name) {
  const Fiber& me = *block.running;
  if (!checking() || !is_local(me, place, bytes)) return;
  memset(state_of(me, place), empty, bytes);
  const auto* start = static_cast<const unsigned char*>(place);
  for (Array& array : of(me).arrays)
    if (array.start == start) {
      array = {start, bytes, name};
      return;
    }
  of(me).arrays.push_back({start, bytes, name});
}

void touch_local(const Fiber& fiber, const void* place, size_t bytes, bool writes, Site site) {
  if (!is_local(fiber, place, bytes)) return;
  uint8_t* state = state_of(fiber, place);
  if (!fiber.held.empty()) check_held(fiber, place, bytes, writes, site);
  if (state[0] == foreign) return;
  if (state[bytes - 1] == foreign) {
    const Array* array = array_at(fiber, place);
    if (array != nullptr) {
      Report report("overrun", site, &fiber);
      report.text("array", array->name).text("access", writes ? "write" : "read");
      report.number("offset", static_cast<const unsigned char*>(place) - array->start);
      report.number("size", long(array->bytes)).number("bytes", long(bytes)).send();
    }
    return;
  }
  if (writes) memset(state, written_now(fiber), bytes);
  else if (memchr(state, empty, bytes) != nullptr) report_empty(fiber, place, bytes, state, site);
}

void take_local(const Fiber& fiber, const void* place, size_t bytes, Site site) {
  if (!checking() || !is_local(fiber, place, bytes)) return;
  const uint8_t* state = state_of(fiber, place);
  if (memchr(state, empty, bytes) != nullptr) report_empty(fiber, place, bytes, state, site);
}

void give_local(const Fiber& fiber, const void* place, size_t bytes) {
  if (!checking() || !is_local(fiber, place, bytes)) return;
  uint8_t* state = state_of(fiber, place);
  for (size_t i = 0; i < bytes; ++i)
    if (state[i] != foreign) state[i] = full;
}

void fence_locals(const Fiber& fiber) {
  if (!checking()) return;
  Locals& mine = of(fiber);
  if (++mine.fences % counted_fences != 0) return;
  // The count begins again: what is there was written before.
  for (const Array& array : mine.arrays) {
    uint8_t* state = state_of(fiber, array.start);
    for (size_t i = 0; i < array.bytes; ++i) state[i] = std::min(state[i], full);
  }
}

bool is_fenced_local(const Fiber& fiber, const void* place, size_t bytes) {
  if (!checking() || !is_local(fiber, place, bytes)) return true;
  return memchr(state_of(fiber, place), written_now(fiber), bytes) == nullptr;
}

}  // namespace tl::emulator

// What -fsanitize=bounds calls for an index that an array does not have.
namespace {

struct TypeName {
  uint16_t kind, info;
  char name[1];
};
struct BadIndex {
  const char* file;
  uint32_t line, column;
  const TypeName *array, *index;
};

}  // namespace

extern "C" void __ubsan_handle_out_of_bounds(const BadIndex* what, uintptr_t index) {
  using namespace tl::emulator;
  if (block.running == nullptr) return;
  const Site site =
      Site::at_code(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
  Report report("index", site, block.running);
  report.number("index", long(int64_t(index))).text("type", what->array->name).send();
  abandon_block();
}
