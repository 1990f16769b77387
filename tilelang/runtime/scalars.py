"""Is this Python value a number of that dtype, and which bytes are it?"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Mapping
from typing import Any, Final

from tilelang.dtypes import DType
from tilelang.runtime.tensors import NotATensor, is_tensor, view_of
from tilelang_diagnostics import with_article

Scalar = int | float

# How `struct` writes a number of a dtype; bfloat16 is given as its bits.
FORMATS: Final[Mapping[str, str]] = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "tfloat32": "f",
    "float64": "d", "bfloat16": "H", "handle": "Q",
}  # fmt: skip


def checked_scalar(dtype: DType, value: Any) -> Scalar | str:
    """`value` as a number of `dtype`, or what is wrong with it, to follow "argument x is"."""
    if dtype.base == "handle":
        return _checked_pointer(value)
    if isinstance(value, str | bytes) or value is None or is_tensor(value):
        return f"{_short(value)}, expected a number of dtype {dtype.name}"
    if dtype.is_float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return f"{_short(value)}, expected a number of dtype {dtype.name}"
        except OverflowError:
            return f"an integer beyond the range of {dtype.name}"
    try:
        number = operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return f"{value!r}, a float; expected an integer of dtype {dtype.name}"
        numpy = sys.modules.get("numpy")
        if dtype.kind == "bool" and numpy is not None and isinstance(value, numpy.bool_):
            return int(bool(value))
        return f"{_short(value)}, expected an integer of dtype {dtype.name}"
    low, high = dtype.integer_range()
    if not low <= number <= high:
        return f"{number}, outside the range of {dtype.name} ({low} to {high})"
    return number


def packed(dtype: str, value: Scalar) -> bytes:
    """The bytes of a scalar of a dtype in FORMATS; raises struct.error where it does not fit."""
    number = bfloat16_bits(value) if dtype == "bfloat16" else fitted(dtype, value)
    return struct.pack(f"<{FORMATS[dtype]}", number)


def fitted(dtype: str, value: Scalar) -> Scalar:
    """`value`, or the infinity that it is as a float of `dtype`."""
    try:
        struct.pack(f"<{FORMATS[dtype]}", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    except struct.error:
        pass  # whoever packs it says so
    return value


def bfloat16_bits(value: Scalar) -> int:
    """The nearest bfloat16, ties to even, as its bits."""
    bits: int = struct.unpack("<I", struct.pack("<f", fitted("float32", value)))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _checked_pointer(value: Any) -> Scalar | str:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 1 << 64 else f"{value}, which is no address"
    try:
        return view_of(value).address
    except NotATensor:
        return f"{_short(value)}, expected an address, a tensor or None"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else ""
    return text if 0 < len(text) <= 40 else with_article(type(value).__name__)
