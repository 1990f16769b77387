#include "memory.h"

#include <emulator/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

namespace tl::emulator {

std::vector<Region> regions;

namespace {

constexpr size_t guard = 1 << 20;
constexpr uint32_t static_window = 0x40000000;
unsigned char* arena_start;
size_t arena_size;
unsigned char* static_start;
size_t static_size;

uintptr_t number(const void* place) { return reinterpret_cast<uintptr_t>(place); }

}  // namespace

void make_arena(size_t bytes) {
  if (arena_start != nullptr) munmap(arena_start - guard, arena_size + 2 * guard);
  const size_t rounded = (bytes + 4095) & ~size_t(4095);
  auto* memory = static_cast<unsigned char*>(
      mmap(nullptr, rounded + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED ||
      (rounded > 0 && mprotect(memory + guard, rounded, PROT_READ | PROT_WRITE) != 0)) {
    perror("no memory for the shared memory of a block");
    exit(4);
  }
  arena_start = memory + guard;
  arena_size = bytes;
}

void set_static_shared(unsigned char* start, size_t bytes) {
  static_start = start;
  static_size = bytes;
}

unsigned char* arena() { return arena_start; }
size_t shared_bytes() { return arena_size + static_size; }

void forget_shared_memory() {
  memset(arena_start, 0xff, arena_size);
  memset(static_start, 0xff, static_size);
}

long shared_offset(const void* place, size_t bytes) {
  const uintptr_t at = number(place), in_arena = at - number(arena_start);
  if (in_arena < arena_size) return in_arena + bytes <= arena_size ? long(in_arena) : -1;
  const uintptr_t in_static = at - number(static_start);
  if (in_static < static_size)
    return in_static + bytes <= static_size ? long(arena_size + in_static) : -1;
  return -1;
}

SharedPlace nearest_shared(const void* place) {
  const auto* at = static_cast<const unsigned char*>(place);
  const SharedPlace in_arena{at - arena_start, arena_size};
  const SharedPlace in_static{at - static_start, static_size};
  if (static_size == 0 || arena_size == 0) return static_size == 0 ? in_arena : in_static;
  const auto distance = [](SharedPlace p) {
    return p.offset < 0 ? -p.offset : std::max(0l, p.offset - long(p.bytes));
  };
  return distance(in_arena) <= distance(in_static) ? in_arena : in_static;
}

uint32_t shared_address(const void* place) {
  const uintptr_t in_static = number(place) - number(static_start);
  if (in_static < static_size) return static_window + uint32_t(in_static);
  return uint32_t(number(place) - number(arena_start));
}

void* shared_pointer(uint32_t address) {
  // Signed: an index may lead before the start, and has to be seen there.
  if (address >= static_window && address < 2 * static_window)
    return static_start + (address - static_window);
  return arena_start + int32_t(address);
}

const Region* region_of(const void* place, size_t bytes) {
  static size_t last;
  const size_t count = regions.size();
  for (size_t i = 0; i < count; ++i) {
    const Region& region = regions[(last + i) % count];
    if (number(place) - number(region.start) < region.bytes) {
      last = (last + i) % count;
      return number(place) - number(region.start) + bytes <= region.bytes ? &region : nullptr;
    }
  }
  return nullptr;
}

}  // namespace tl::emulator
