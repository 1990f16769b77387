// Clusters of blocks, dependent launches, registers of warp groups.
#pragma once
#include <tl/common.h>

namespace tl {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

template <int relaxed = 0> TL_DEVICE void cluster_arrive() {
  if constexpr (relaxed) asm volatile("barrier.cluster.arrive.relaxed.aligned;" :::);
  else asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
TL_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TL_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

#define TL_REGISTER(name, text)                                   \
  TL_DEVICE int name() {                                          \
    uint32 value;                                                 \
    asm volatile("mov.u32 %0, " text ";" : "=r"(value));          \
    return int(value);                                            \
  }
TL_REGISTER(block_rank_in_cluster, "%%cluster_ctarank")
TL_REGISTER(get_cluster_size, "%%cluster_nctarank")
#undef TL_REGISTER

#define TL_REGISTERS(name, text)                                              \
  template <int dim> TL_DEVICE int name() {                                   \
    uint32 value;                                                             \
    if constexpr (dim == 0) asm volatile("mov.u32 %0, " text ".x;" : "=r"(value));      \
    else if constexpr (dim == 1) asm volatile("mov.u32 %0, " text ".y;" : "=r"(value)); \
    else asm volatile("mov.u32 %0, " text ".z;" : "=r"(value));               \
    return int(value);                                                        \
  }
TL_REGISTERS(get_cluster_id, "%%clusterid")
TL_REGISTERS(get_cluster_dims, "%%cluster_nctaid")
TL_REGISTERS(get_cluster_extent, "%%nclusterid")
#undef TL_REGISTERS

TL_DEVICE void pdl_sync() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
TL_DEVICE void pdl_trigger() { asm volatile("griddepcontrol.launch_dependents;" :::); }

// Only the `a` spelling of an architecture has it.
template <int registers, int raises> TL_DEVICE void set_max_nreg() {
  if constexpr (raises) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
  else asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

#endif

}  // namespace tl
