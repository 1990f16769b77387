"""Is this Python value a number of that dtype?"""

from __future__ import annotations

import operator
import sys
from typing import Any

from tilelang.dtypes import DType
from tilelang.runtime.tensors import NotATensor, is_tensor, view_of

Scalar = int | float


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
    return text if 0 < len(text) <= 40 else f"a {type(value).__name__}"
