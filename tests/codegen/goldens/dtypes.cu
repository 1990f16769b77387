#include <tl/common.h>
#include <tl/bfloat16.h>
#include <tl/float8.h>
#include <tl/minifloat.h>
#include <tl/packed.h>
#include <tl/math.h>

extern "C" __global__ void __launch_bounds__(64) main_kernel(bool* __restrict__ b, tl::int8* __restrict__ i8, tl::uint16* __restrict__ u16, tl::int64* __restrict__ i64, tl::bfloat16* __restrict__ bf, double* __restrict__ f64, tl::float8_e4m3fn* __restrict__ e4m3, tl::float6_e2m3fn* __restrict__ e2m3, tl::uint8* __restrict__ i4) {
  const int tx = int(threadIdx.x);
  b[tx] = i8[tx] > tl::int8(0);
  i8[tx] = tl::int8(i8[tx] + tl::int8(u16[tx]));
  u16[tx] = tl::max(u16[tx], tl::uint16(i64[tx]));
  i64[tx] = i64[tx] * 3 + tx;
  bf[tx] = bf[tx] * tl::cast<tl::bfloat16>(f64[tx]) + tl::bfloat16(0.5f);
  f64[tx] = tl::exp(f64[tx]) + 1e-300;
  bf[tx] = tl::fast_exp(bf[tx]);
  e4m3[tx] = tl::cast<tl::float8_e4m3fn>(float(e4m3[tx]) + float(tl::cast<tl::float8_e4m3fn>(bf[tx])));
  e2m3[tx] = tl::cast<tl::float6_e2m3fn>(e4m3[tx]);
  if (tx < 32) {
    const tl::vec<tl::uint8, 1> i4_lanes = tl::load<1>(&i4[tx]);
    const tl::vec<tl::int8, 2> i8_lanes = tl::load<2>(&i8[tx * 2]);
    tl::vec<tl::uint8, 1> i4_lanes_1 = {};
    #pragma unroll
    for (int v = 0; v < 2; ++v) {
      tl::store_packed<tl::packed_int4>(i4_lanes_1.lanes, v, tl::wrap<4>(tl::int8(tl::load_packed<tl::packed_int4>(i4_lanes.lanes, v) + tl::wrap<4>(tl::cast<tl::int8>(i8_lanes[v])))));
    }
    tl::store(&i4[tx], i4_lanes_1);
  }
}
