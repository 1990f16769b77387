// Barriers in shared memory that also count bytes (PTX ISA, mbarrier).
#pragma once
#include <tl/common.h>

namespace tl {

struct __align__(8) mbarrier {
  uint64 state;
};

TL_DEVICE void mbarrier_init(mbarrier& barrier, int count, TL_HERE) {
  emulator::mbarrier_init(&barrier, count, line);
}
TL_DEVICE void mbarrier_inval(mbarrier& barrier, TL_HERE) {
  emulator::mbarrier_inval(&barrier, line);
}
TL_DEVICE void cp_async_barrier_noinc(mbarrier& barrier, TL_HERE) {
  emulator::copy_async_arrive(&barrier, line);
}
TL_DEVICE void mbarrier_arrive(mbarrier& barrier, emulator::Place at = emulator::Place::here()) {
  emulator::mbarrier_arrive(&barrier, 1, 0, at.line);
}
// In another block of the cluster.
TL_DEVICE void mbarrier_arrive(mbarrier&, int, TL_HERE) {
  emulator::refuse("mbarrier_arrive in another block", line);
}
TL_DEVICE void mbarrier_expect_tx(mbarrier& barrier, int bytes, TL_HERE) {
  emulator::mbarrier_arrive(&barrier, 0, bytes, line);
}
TL_DEVICE void mbarrier_arrive_expect_tx(mbarrier& barrier, int bytes, TL_HERE) {
  emulator::mbarrier_arrive(&barrier, 1, bytes, line);
}
TL_DEVICE void mbarrier_wait_parity(mbarrier& barrier, int parity, TL_HERE) {
  emulator::mbarrier_wait(&barrier, parity, line);
}
// Between the generic and the asynchronous proxy.
TL_DEVICE void fence_mbarrier_init(TL_HERE) { emulator::fence_proxy_async(line); }
TL_DEVICE void fence_proxy_async(TL_HERE) { emulator::fence_proxy_async(line); }

}  // namespace tl
