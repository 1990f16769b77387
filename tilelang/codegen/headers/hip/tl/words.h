// The words of HIP that generated code uses. ROCm's headers bring them; where those are not there,
// as with any clang that knows the processor, these do. Nothing here needs a library: what a
// processor of AMD's has no instructions for is declared and left to ROCm's.
#pragma once

#if defined(__HIPCC_RTC__)
// The runtime compiler knows them all.
#elif defined(__has_include) && __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#else

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))

#define __align__(n) __attribute__((aligned(n)))

typedef __SIZE_TYPE__ size_t;

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

// Coordinates read like variables, and are instructions.
#define TL_COORDINATES(name, builtin)                                             \
  struct tl_##name {                                                              \
    static __device__ __forceinline__ unsigned get_x() { return builtin##_x(); }  \
    static __device__ __forceinline__ unsigned get_y() { return builtin##_y(); }  \
    static __device__ __forceinline__ unsigned get_z() { return builtin##_z(); }  \
    __declspec(property(get = get_x)) unsigned x;                                 \
    __declspec(property(get = get_y)) unsigned y;                                 \
    __declspec(property(get = get_z)) unsigned z;                                 \
  };                                                                              \
  static const __device__ tl_##name name = {};
TL_COORDINATES(threadIdx, __builtin_amdgcn_workitem_id)
TL_COORDINATES(blockIdx, __builtin_amdgcn_workgroup_id)
TL_COORDINATES(blockDim, __builtin_amdgcn_workgroup_size)
#undef TL_COORDINATES
struct tl_gridDim {
  // The runtime gives the size of the grid in threads.
  static __device__ __forceinline__ unsigned get_x() {
    return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
  }
  static __device__ __forceinline__ unsigned get_y() {
    return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
  }
  static __device__ __forceinline__ unsigned get_z() {
    return __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
  }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
};
static const __device__ tl_gridDim gridDim = {};

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence_block() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
static __device__ __forceinline__ void __threadfence() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
static __device__ __forceinline__ void __threadfence_system() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}

static __device__ __forceinline__ int min(int a, int b) { return b < a ? b : a; }
static __device__ __forceinline__ int max(int a, int b) { return a < b ? b : a; }
static __device__ __forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
static __device__ __forceinline__ int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
static __device__ __forceinline__ int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(unsigned(x));
}
static __device__ __forceinline__ int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)(x));
}
static __device__ __forceinline__ unsigned __float2uint_rn(float x) {
  return unsigned(__builtin_rintf(x));
}
static __device__ __forceinline__ unsigned atomicAnd(unsigned* place, unsigned x) {
  return __hip_atomic_fetch_and(place, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ __forceinline__ unsigned atomicOr(unsigned* place, unsigned x) {
  return __hip_atomic_fetch_or(place, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

#include <tl/functions.h>

#endif
