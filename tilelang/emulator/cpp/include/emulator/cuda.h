// What every CUDA source file finds without including anything: the part of it that generated
// kernels and the device headers use.
#pragma once
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <emulator/runtime.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// Static shared memory: one block at a time runs in a process, so one copy is enough.
#define __shared__ static __attribute__((section("tl_shared")))

#define threadIdx (::tl::emulator::current->thread)
#define blockIdx (::tl::emulator::current->block)
#define blockDim (::tl::emulator::current->block_size)
#define gridDim (::tl::emulator::current->grid)
constexpr int warpSize = 32;

static inline size_t __cvta_generic_to_shared(const void* place) {
  return tl::emulator::shared_address(place);
}

#include <emulator/vectors.h>
#include <emulator/intrinsics.h>
#include <emulator/warps.h>
#include <emulator/atomics.h>
