#include "grid.h"

#include <sys/mman.h>
#include <unistd.h>

namespace tl::emulator {

Shared* shared;

void make_shared() {
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

void reset_shared(uint32_t blocks) {
  *shared = Shared();
  shared->blocks = blocks;
}

uint64_t take_block() { return __atomic_fetch_add(&shared->next_block, 1, __ATOMIC_RELAXED); }
bool is_stopped() { return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED) != 0; }
void stop_all() { __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED); }
void block_ended() { __atomic_fetch_add(&shared->ended, 1, __ATOMIC_RELEASE); }

bool wait_for_grid() {
  const uint32_t generation = __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&shared->arrived, 1, __ATOMIC_ACQ_REL) == shared->blocks) {
    shared->arrived = 0;
    __atomic_add_fetch(&shared->generation, 1, __ATOMIC_RELEASE);
    return true;
  }
  while (__atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE) == generation) {
    if (__atomic_load_n(&shared->ended, __ATOMIC_ACQUIRE) > 0)
      // It may have ended after this barrier was complete, since the line above looked.
      return __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE) != generation;
    if (is_stopped()) return false;
    usleep(20);
  }
  return true;
}

}  // namespace tl::emulator
