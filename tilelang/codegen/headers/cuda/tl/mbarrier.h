// Barriers in shared memory that also count bytes (PTX ISA, mbarrier).
#pragma once
#include <tl/common.h>

namespace tl {

struct __align__(8) mbarrier {
  uint64 state;
};

TL_DEVICE void mbarrier_init(mbarrier& barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count)
               : "memory");
}
TL_DEVICE void mbarrier_inval(mbarrier& barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
TL_DEVICE void cp_async_barrier_noinc(mbarrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

TL_DEVICE void mbarrier_arrive(mbarrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// In block `cta` of the cluster.
TL_DEVICE void mbarrier_arrive(mbarrier& barrier, int cta) {
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(&barrier)),
      "r"(cta)
      : "memory");
}
TL_DEVICE void mbarrier_expect_tx(mbarrier& barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
TL_DEVICE void mbarrier_arrive_expect_tx(mbarrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
TL_DEVICE void mbarrier_wait_parity(mbarrier& barrier, int parity) {
  asm volatile(
      "{\n .reg .pred done;\n waiting:\n"
      " mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra waiting;\n}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}
TL_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TL_DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif

}  // namespace tl
