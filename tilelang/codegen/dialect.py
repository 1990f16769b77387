"""What differs between the C-like languages we print: a table per language.

`c_printer` knows statements and expressions; a `Dialect` knows words. What a table cannot say is a
method of the printer that a dialect's subclass overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tilelang.dtypes import DType
from tilelang.dtypes import dtype as dtype_of

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
    - `static_shared`, `arena`, `local`: declarations, from `{type}`, `{name}`, `{count}`,
      `{align}`.
    """

    name: str
    extension: str
    types: Mapping[str, str]
    type_headers: Mapping[str, str]
    maths: Mapping[str, str]
    indices: Mapping[str, str]
    kernel: str
    static_shared: str
    arena: str
    local: str
    restrict: str = "__restrict__"
    unroll: str = "#pragma unroll"
    include: str = "#include <tl/{header}>"
    reserved: frozenset[str] = field(default_factory=frozenset)

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
