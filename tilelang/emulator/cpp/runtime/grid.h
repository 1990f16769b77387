// What the processes of one launch share: which blocks are taken, and the barrier of the grid.
#pragma once
#include <stdint.h>

namespace tl::emulator {

struct Shared {
  uint64_t next_block;
  uint32_t stop;                        // something failed: finish the block at hand, take no other
  uint32_t arrived, generation, ended;  // of the barrier of the grid
  uint32_t blocks;
};
extern Shared* shared;

void make_shared();
// Before each launch.
void reset_shared(uint32_t blocks);
uint64_t take_block();
bool is_stopped();
void stop_all();
// False when a block it would have to wait for has ended.
bool wait_for_grid();
void block_ended();

}  // namespace tl::emulator
