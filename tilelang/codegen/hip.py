"""How is a lowered kernel written in HIP C++?

The words are below; kernels are put together by `device_printer`. What ROCm's mathematical library
has and the compiler of a bare clang has not is left out, so that it is refused by name.
"""

from __future__ import annotations

from typing import Final

from tilelang.codegen.cuda import CUDA
from tilelang.codegen.dialect import Dialect

_MATHS: Final = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt tanh floor trunc ceil nearbyint round sigmoid "
    "fmod copysign ldexp fma fabs"
)
# Of float64 there are instructions for the others only.
_NARROW: Final = "exp exp2 exp10 expm1 log log2 log10 log1p tanh sigmoid"

HIP: Final = Dialect(
    name="hip",
    language="HIP",
    extension="hip",
    types=CUDA.types,
    type_headers=CUDA.type_headers,
    maths={name: name for name in _MATHS.split()},
    warp=64,
    narrow_maths=frozenset(_NARROW.split()),
    indices=CUDA.indices,
    kernel='extern "C" __global__ void __launch_bounds__({threads}) {name}({params}) {{',
    static_shared="alignas({align}) __shared__ {type} {name}[{count}];",
    arena="alignas(128) extern __shared__ unsigned char {name}[];",
    local="alignas({align}) {type} {name}[{count}];",
    reserved=CUDA.reserved | {"warpSize", "hipThreadIdx_x", "wave", "half", "rocblas"},
)  # fmt: skip
