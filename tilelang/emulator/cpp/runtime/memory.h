// Where the memory of a launch lies: shared memory of the block, and the tensors.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

namespace tl::emulator {

// A tensor or a workspace.
struct Region {
  std::string name;
  unsigned char* start;
  size_t bytes;
  bool is_written = false;  // by any kernel of the call
  bool is_fresh = false;    // nobody gave it values
};
extern std::vector<Region> regions;

// Shared memory: the arena, and what a kernel declares statically. Both are mapped by themselves,
// with pages around them that nobody may touch.
void make_arena(size_t bytes);
void set_static_shared(unsigned char* start, size_t bytes);
unsigned char* arena();
// Shared memory of a new block holds nonsense.
void forget_shared_memory();
// Offset in shared memory, arena first, or -1.
long shared_offset(const void* place, size_t bytes);
size_t shared_bytes();
// How far a place is from the start of the nearer of the two, and how large that one is.
struct SharedPlace {
  long offset;
  size_t bytes;
};
SharedPlace nearest_shared(const void* place);

// The tensor that holds the whole access, or null.
const Region* region_of(const void* place, size_t bytes);

}  // namespace tl::emulator
