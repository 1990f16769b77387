"""What differs between the C-like languages we print: a table per language.

`c_printer` knows statements and expressions, `device_printer` kernels, a `Dialect` words. What a
table cannot say of a call is a function of it, `refuses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.dtypes import DType
from tilelang.dtypes import dtype as dtype_of
from tilelang.ir.device_op import DeviceOp

# Formats that no C-like language computes with: arithmetic happens in float.
STORAGE_ONLY: Final = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn", "float4_e2m1_unpacked",
)  # fmt: skip
# Elements that share a byte, and the type one of them has in a register.
PACKED: Final[Mapping[str, str]] = {
    "int4": "int8", "uint4": "uint8", "uint2": "uint8", "uint1": "uint8",
    "float4_e2m1fn": "float4_e2m1fn",
}  # fmt: skip
# What C does by itself, with the usual conversions; narrower integers are widened to int there.
BUILTIN: Final = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "tfloat32",
})  # fmt: skip
NARROW: Final = frozenset({"int8", "int16", "uint8", "uint16"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one language.

    - `types`: dtype base -> type. `type_headers`: dtype base -> header that defines it.
    - `maths`: TIRX operator, without its namespace -> function in `tl`.
    - `indices`: thread tag -> expression. `reserved`: names no variable may have.
    - `kernel`: the head of a kernel, from `{name}`, `{threads}`, `{params}`.
    - `buffer_param`, `value_param`, `map_param`: parameters, from `{name}`, `{number}`, and
      `{constant}`, `{type}`, `{restrict}`; `launch_params` follow those of the kernel's own.
    - `static_shared`, `arena`, `local`: declarations, from `{type}`, `{name}`, `{count}`,
      `{align}`, the arena from `{name}` and `{bytes}`.
    - `spaces`: scope of a buffer -> what stands before the type of a pointer into it.
    - `pointer_cast`: a pointer made another, from `{type}` and `{place}`. `long_suffix`: of a
      literal of 64 bits, in lower case. `unroll_by`: before a loop unrolled `{factor}` times.
    - `most_params`: how many parameters of its own a kernel may have.
    - `static_shared` is "" where only one array of shared memory is declared, the arena.
    - `matrices`: a declaration of matrices that a warp holds together.
    - `warp`: how many lanes a warp has.
    - `narrow_maths`: those of `maths` that have no form for float64.
    - `externs`: whether functions of the author's own may be called.
    - `foreign`: whether kernels written in this language may stand among generated ones.
    - `refuses`: what the language lacks of a call of a device operation that it has, if anything.

    `name` is the kind of target that is printed for, `language` what people call the language.
    """

    name: str
    language: str
    extension: str
    types: Mapping[str, str]
    type_headers: Mapping[str, str]
    maths: Mapping[str, str]
    indices: Mapping[str, str]
    kernel: str
    static_shared: str
    arena: str
    local: str
    buffer_param: str = "{constant}{type}* {restrict}{name}"
    value_param: str = "const {type} {name}"
    map_param: str = "const __grid_constant__ tl::tensor_map {name}"
    launch_params: tuple[str, ...] = ()
    most_params: int | None = None
    spaces: Mapping[str, str] = field(default_factory=dict)
    matrices: str = ""
    pointer_cast: str = ""
    long_suffix: str = "ll"
    warp: int = 32
    narrow_maths: frozenset[str] = frozenset()
    foreign: bool = False
    externs: bool = True
    restrict: str = "__restrict__"
    unroll: str = "#pragma unroll"
    unroll_by: str = "#pragma unroll {factor}"
    refuses: Callable[[DeviceOp, Any], str | None] | None = None
    include: str = "#include <tl/{header}>"
    reserved: frozenset[str] = field(default_factory=frozenset)

    def pointer(self, type_: str, scope: str) -> str:
        """The type of a pointer to elements of `type_` in memory of `scope`."""
        space = self.spaces.get(scope)
        return f"{type_}*" if space is None else f"{space} {type_}*"

    def cast(self, pointer: str, place: str) -> str:
        """An address `place` as a `pointer`."""
        if self.pointer_cast:
            bare = place[1:-1] if place.startswith("(") and place.endswith(")") else place
            return self.pointer_cast.format(type=pointer, place=bare)
        return f"({pointer}){place}"

    def type_name(self, dtype: DType) -> str | None:
        """The type of a value of `dtype` in a register; None if there is none."""
        base = self.types.get(dtype.base)
        if base is None or dtype.lanes == 1:
            return base
        return f"tl::vec<{base}, {dtype.lanes}>"


def parse(name: str) -> DType:
    """The dtype TVM prints as `name`."""
    return dtype_of(name)


def element_bytes(dtype: DType) -> int:
    """Bytes of one element in memory; of sub-byte elements, of the byte they share."""
    return max(1, dtype.bytes)


def per_byte(dtype: DType) -> int:
    """How many elements share one byte of memory, 1 for whole bytes."""
    return 8 // dtype.bits if dtype.base in PACKED and dtype.lanes == 1 else 1
