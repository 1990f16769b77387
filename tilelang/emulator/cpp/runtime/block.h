// The threads of one block: fibers of one operating-system thread, switched where GPU threads wait.
#pragma once
#include <emulator/runtime.h>

#include <string>
#include <vector>

#include "order.h"

namespace tl::emulator {

using Entry = void (*)(void* const* arguments);

struct Launch {
  std::string symbol;
  Entry entry = nullptr;
  std::vector<void*> arguments;
  Index grid{1, 1, 1}, block{1, 1, 1};
  size_t arena_bytes = 0;
  bool cooperative = false;

  unsigned threads() const { return block.x * block.y * block.z; }
  uint64_t blocks() const { return uint64_t(grid.x) * grid.y * grid.z; }
};

// One bulk store: where from, and where to.
struct PendingStore {
  const unsigned char* from;
  TensorMap map;
  bool adds;
  int at[5], line;
  Mark work;
};

// Registers of a matrix instruction that has yet to be waited for; what it only reads may be read.
struct HeldRegisters {
  const unsigned char* start;
  size_t bytes;
  bool is_written;
  int line;
};

// One cp.async: `size` of `bytes` bytes are read.
struct PendingCopy {
  unsigned char* to;
  const void* from;
  int bytes, size, line;
};

struct Fiber {
  Context context;
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  int number = 0, warp = 0, lane = 0;
  bool finished = false;
  // What it waits for, for whoever has to explain a deadlock.
  const char* waits_for = "";
  int waits_at = 0, barrier_id = -1, barrier_count = 0, parity = 0;
  void* mbarrier = nullptr;
  // cp.async: the group that is open, and closed ones, oldest first.
  std::vector<PendingCopy> open_group;
  std::vector<std::vector<PendingCopy>> groups;
  // Bulk stores, likewise.
  std::vector<PendingStore> open_stores;
  std::vector<std::vector<PendingStore>> stores;
  int store_engine = -1;
  // Registers that matrix instructions under way use.
  std::vector<HeldRegisters> held;
};

// 32, but for processors whose warps are waves of 64; a mask has a bit for each.
extern int warp_lanes;

// Of the block that runs in this process.
struct Block {
  std::vector<Fiber*> fibers;
  Fiber* running = nullptr;
  int live = 0;
  bool failed = false;
};
extern Block block;

// 0: first come, first served. Anything else seeds a random order.
void set_schedule(uint64_t seed);
uint64_t schedule();
// Runs one block to its end; false when it failed.
bool run_block(const Launch& launch, Index index);

// For what threads wait for.
void suspend(const char* waits_for, int line);
void make_ready(Fiber* fiber);
// Ends the block from within: something happened after which nothing means anything.
[[noreturn]] void abandon_block();

// Called once when all lanes of `mask` have come: `lanes[i]` is what lane i brought, null for
// lanes that take no part. `what` tells one kind of meeting from another.
using Combine = void (*)(void* const* lanes);
void warp_together(uint64_t mask, void* brought, Combine combine, const char* what, int line);

// What each part forgets between blocks, and does when a thread ends.
void reset_barriers();
void reset_warps(int count);
void barriers_lost(const Fiber& fiber);
void warps_lost(const Fiber& fiber);
void reset_mbarriers();
void reset_bulk();
void reset_wgmma();
// Lets one bulk copy that is under way arrive; false when there is none.
bool advance_bulk();
// Stores that nobody waited for happen when the block ends.
void finish_bulk();
std::string describe_wait(const Fiber& fiber);
std::string describe_mbarrier(const Fiber& fiber);

}  // namespace tl::emulator
