"""How is a lowered kernel written in CUDA C++?

The words are below; kernels are put together by `device_printer`.
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.codegen.device_printer import PrintError, print_device
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.dialect import Dialect
from tilelang.ir import attrs

_FLOAT8 = {
    "float8_e4m3fn": "tl::float8_e4m3fn", "float8_e4m3": "tl::float8_e4m3fn",
    "float8_e5m2": "tl::float8_e5m2", "float8_e8m0fnu": "tl::float8_e8m0fnu",
}  # fmt: skip
_MINIFLOATS = (
    "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1_unpacked",
)  # fmt: skip
_MATHS = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh atan2 floor trunc ceil nearbyint round erf sigmoid fmod copysign nextafter "
    "hypot ldexp fma pow fabs"
)

# Names that CUDA's headers and the C library take in every file.
_RESERVED: Final = frozenset({
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "float2", "float4",
    "int2", "uint2", "uint4", "half2", "make_float4", "make_uint4", "assert", "clock", "exp",
    "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "tanh", "pow", "min", "max", "abs",
    "floor", "ceil", "round", "trunc", "erf", "fma", "j0", "j1", "jn", "y0", "y1", "yn", "gamma",
})  # fmt: skip

CUDA: Final = Dialect(
    name="cuda",
    language="CUDA",
    extension="cu",
    types={
        "bool": "bool", "int8": "tl::int8", "int16": "tl::int16", "int32": "int",
        "int64": "tl::int64", "uint8": "tl::uint8", "uint16": "tl::uint16",
        "uint32": "tl::uint32", "uint64": "tl::uint64", "float16": "tl::float16",
        "bfloat16": "tl::bfloat16", "float32": "float", "tfloat32": "float", "float64": "double",
        "int4": "tl::int8", "uint4": "tl::uint8", "uint2": "tl::uint8", "uint1": "tl::uint8",
        **_FLOAT8, **{name: f"tl::{name}" for name in _MINIFLOATS},
    },
    type_headers={
        "float16": "float16.h", "bfloat16": "bfloat16.h",
        **dict.fromkeys(_FLOAT8, "float8.h"), **dict.fromkeys(_MINIFLOATS, "minifloat.h"),
    },
    maths={name: name for name in _MATHS.split()},
    indices={tag: tag for tag in (*attrs.BLOCK_TAGS, *attrs.THREAD_TAGS)},
    kernel='extern "C" __global__ void __launch_bounds__({threads}) {name}({params}) {{',
    static_shared="__shared__ __align__({align}) {type} {name}[{count}];",
    arena="extern __shared__ __align__(1024) unsigned char {name}[];",
    local="__align__({align}) {type} {name}[{count}];",
    foreign=True,
    reserved=_RESERVED,
)  # fmt: skip

CudaError = PrintError


def print_cuda(
    func: Any, *, line_directives: bool = False, index_bits: int = 32, noalias: bool = True
) -> DeviceSource:
    """The CUDA source of `func`, which is at stage `device`; raises `CudaError`."""
    return print_device(
        func, CUDA, line_directives=line_directives, index_bits=index_bits, noalias=noalias
    )
