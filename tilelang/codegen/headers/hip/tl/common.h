// Types, vectors and conversions: the common header, in the words of HIP. What it asks of CUDA by
// name is given that name while it is read.
#pragma once
#include <tl/words.h>

namespace tl {
namespace hip {

// Toward zero; what is out of range becomes the nearest value there is, NaN becomes 0.
template <class To, class From>
__device__ __forceinline__ To saturated(From x, From low, From high, To least, To most) {
  if (x != x) return To(0);
  if (x < low) return least;
  return x >= high ? most : To(x);
}
#define TL_SATURATED(name, To, From, low, high, least, most)              \
  __device__ __forceinline__ To name(From x) {                            \
    return saturated<To, From>(x, From(low), From(high), least, most);    \
  }
TL_SATURATED(float2int, int, float, -2147483648.0, 2147483648.0, -2147483647 - 1, 2147483647)
TL_SATURATED(double2int, int, double, -2147483648.0, 2147483648.0, -2147483647 - 1, 2147483647)
TL_SATURATED(float2uint, unsigned, float, 0.0, 4294967296.0, 0u, 4294967295u)
TL_SATURATED(double2uint, unsigned, double, 0.0, 4294967296.0, 0u, 4294967295u)
TL_SATURATED(float2ll, long long, float, -9223372036854775808.0, 9223372036854775808.0,
             -9223372036854775807ll - 1, 9223372036854775807ll)
TL_SATURATED(double2ll, long long, double, -9223372036854775808.0, 9223372036854775808.0,
             -9223372036854775807ll - 1, 9223372036854775807ll)
TL_SATURATED(float2ull, unsigned long long, float, 0.0, 18446744073709551616.0, 0ull,
             18446744073709551615ull)
TL_SATURATED(double2ull, unsigned long long, double, 0.0, 18446744073709551616.0, 0ull,
             18446744073709551615ull)
#undef TL_SATURATED

__device__ __forceinline__ float double2float_rz(double x) {
  const float near = float(x);
  const bool beyond = __builtin_fabs(double(near)) > __builtin_fabs(x);
  return beyond ? __builtin_bit_cast(float, __builtin_bit_cast(unsigned, near) - 1) : near;
}

}  // namespace hip
}  // namespace tl

#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#define memcpy __builtin_memcpy
#define __int_as_float(x) __builtin_bit_cast(float, int(x))
#define __uint_as_float(x) __builtin_bit_cast(float, unsigned(x))
#define __float_as_uint(x) __builtin_bit_cast(unsigned, float(x))
#define __longlong_as_double(x) __builtin_bit_cast(double, (long long)(x))
#define __float2int_rz ::tl::hip::float2int
#define __double2int_rz ::tl::hip::double2int
#define __float2uint_rz ::tl::hip::float2uint
#define __double2uint_rz ::tl::hip::double2uint
#define __float2ll_rz ::tl::hip::float2ll
#define __double2ll_rz ::tl::hip::double2ll
#define __float2ull_rz ::tl::hip::float2ull
#define __double2ull_rz ::tl::hip::double2ull
#define __double2float_rz ::tl::hip::double2float_rz
#define __cvta_generic_to_shared(p) \
  (unsigned long long)((__attribute__((address_space(3))) const void*)(p))
#include_next <tl/common.h>
#undef memcpy
#undef __cvta_generic_to_shared
#undef __double2float_rz
#undef __double2ull_rz
#undef __float2ull_rz
#undef __double2ll_rz
#undef __float2ll_rz
#undef __double2uint_rz
#undef __float2uint_rz
#undef __double2int_rz
#undef __float2int_rz

namespace tl {

// The lanes of a wave, and which of them this thread is.
constexpr int wave = 64;
TL_DEVICE int lane_number() {
  return int(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
}

}  // namespace tl
