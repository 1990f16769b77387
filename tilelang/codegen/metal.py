"""How is a lowered kernel written in the Metal Shading Language?

The words are below; kernels are put together by `device_printer`. Written for version 3.1, which
has `bfloat`: no 64-bit floats, each pointer with the kind of memory it leads to, and a program is
one text without files of its own (`metal_text`).
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.codegen.device_printer import print_device
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.dialect import Dialect, parse
from tilelang.ir import attrs, build
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_ops import constants_of

_ALL_LANES: Final = 0xFFFFFFFF
_LANES: Final = 32
_ATOMIC: Final = ("int32", "uint32", "float32")
_MATHS: Final = (
    "exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh atan2 floor trunc ceil nearbyint round erf sigmoid fmod copysign ldexp fma pow "
    "fabs"
)
_POSITIONS: Final = {"blockIdx": "threadgroup_position", "threadIdx": "thread_position"}

# Metal's own words, and names of its standard library that stand without `metal::`.
_RESERVED: Final = frozenset({
    "kernel", "vertex", "fragment", "mesh", "object", "device", "constant", "thread", "threadgroup",
    "threadgroup_imageblock", "ray_data", "object_data", "visible", "stitchable", "half", "bfloat",
    "uchar", "ushort", "uint", "ulong", "size_t", "ptrdiff_t", "metal", "as_type", "sampler",
    "texture", "assert", "threadgroup_position", "thread_position", "access", "precise", "fast",
    *(f"{t}{n}" for t in ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long",
                          "ulong", "half", "bfloat", "float") for n in (2, 3, 4)),
})  # fmt: skip


def refused(op: DeviceOp, e: Any) -> str | None:
    """What Metal lacks of a call of an operation that it has."""
    dtype = build.dtype_of(e.args[0]) if e.args and op.name.startswith(("shfl", "warp_re")) else ""
    if dtype and parse(dtype).bits > 32:
        return f"of {dtype} (simdgroups exchange at most 32 bits)"
    if op.name.startswith("atomic"):
        return _refused_atomic(e)
    width = constants_of(e).get("width", _LANES)
    if width != _LANES:
        return f"in segments of {width} lanes (simdgroups exchange among {_LANES})"
    if op.name == "sync_threads" and e.args:
        return "with a number (a threadgroup has one barrier)"
    masks = [a for a, row in zip(e.args, op.operands, strict=False) if row.name == "mask"]
    if any(build.int_value(mask) not in (_ALL_LANES, -1) for mask in masks):
        return "of some lanes only (a simdgroup acts as a whole)"
    return None


def _refused_atomic(e: Any) -> str | None:
    dtype = str(e.args[0].source.dtype)
    if dtype not in _ATOMIC:
        return f"of {dtype} (only {', '.join(_ATOMIC)} are atomic)"
    order = constants_of(e).get("memory_order", "relaxed")
    return None if order == "relaxed" else f"in {order} order (all are relaxed)"


METAL: Final = Dialect(
    name="metal",
    language="Metal",
    extension="metal",
    types={
        "bool": "bool", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
        "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
        "float16": "half", "bfloat16": "bfloat", "float32": "float",
    },
    type_headers={},
    maths={name: name for name in _MATHS.split()},
    indices={
        tag: f"{_POSITIONS[tag.partition('.')[0]]}.{tag.partition('.')[2]}"
        for tag in (*attrs.BLOCK_TAGS, *attrs.THREAD_TAGS)
    },
    kernel="[[kernel, max_total_threads_per_threadgroup({threads})]] void {name}({params}) {{",
    static_shared="",
    arena="alignas(16) threadgroup uchar {name}[{bytes}];",
    local="alignas({align}) {type} {name}[{count}];",
    matrices="metal::simdgroup_matrix<{type}, 8, 8> {name}[{count}];",
    buffer_param="{constant}device {type}* {restrict}{name} [[buffer({number})]]",
    value_param="constant {type}& {name} [[buffer({number})]]",
    most_params=31,
    launch_params=(
        "uint3 threadgroup_position [[threadgroup_position_in_grid]]",
        "uint3 thread_position [[thread_position_in_threadgroup]]",
    ),
    spaces={
        "global": "device", "shared": "threadgroup", "shared.dyn": "threadgroup",
        "local": "thread", "local.var": "thread",
    },
    externs=False,
    pointer_cast="reinterpret_cast<{type}>({place})",
    long_suffix="l",
    restrict="",
    unroll="#pragma clang loop unroll(full)",
    unroll_by="#pragma clang loop unroll_count({factor})",
    refuses=refused,
    reserved=_RESERVED,
)  # fmt: skip


def print_metal(func: Any, *, index_bits: int = 32, noalias: bool = True) -> DeviceSource:
    """The Metal source of `func`, which is at stage `device`; raises `PrintError`."""
    return print_device(func, METAL, index_bits=index_bits, noalias=noalias)
