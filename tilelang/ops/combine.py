"""How are two values combined by each reduction, and what is the neutral one?

Shared by reductions, scans and reducers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan

Combine: TypeAlias = Callable[[Any, Any, TirSpan], Any]

_NODES: Final[dict[str, str]] = {
    "sum": "Add", "abssum": "Add", "max": "Max", "absmax": "Max", "min": "Min",
    "bitand": "BitwiseAnd", "bitor": "BitwiseOr", "bitxor": "BitwiseXor",
}  # fmt: skip

KINDS: Final = tuple(_NODES)

_HALVES = ("float16", "bfloat16", "float8_", "float6_", "float4_")


def combine(
    kind: str, left: Any, right: Any, span: TirSpan = None, *, nan_propagate: bool = False
) -> Any:
    """`left` and `right` (already prepared by `prepare`) combined."""
    result = getattr(tirx, _NODES[kind])(left, right, span)
    if not nan_propagate or kind not in ("max", "min", "absmax"):
        return result
    for side in (right, left):
        is_nan = tirx.NE(side, side, span)
        result = tirx.Select(is_nan, side, result, span)
    return result


def prepare(kind: str, value: Any, span: TirSpan = None) -> Any:
    """What a reduction of `kind` combines for element `value`: its magnitude for abs kinds."""
    if not kind.startswith("abs"):
        return value
    dtype = build.dtype_of(value)
    if build.is_float(dtype):
        return tirx.Call("tirx.fabs", [value], ret_ty=dtype, span=span)
    if dtype.startswith("uint"):
        return value
    return tirx.Max(value, tirx.Sub(build.const(0, dtype, span), value, span), span)


def identity(kind: str, dtype: str, span: TirSpan = None) -> Any:
    """The neutral element of `kind` on values of `dtype`."""
    match kind:
        case "sum" | "abssum" | "bitor" | "bitxor":
            return build.const(0, dtype, span)
        case "absmax":
            return build.const(0, dtype, span)
        case "bitand":
            return build.const(_range(dtype)[1] if dtype.startswith("uint") else -1, dtype, span)
        case "max":
            return _extreme(dtype, lowest=True, span=span)
        case "min":
            return _extreme(dtype, lowest=False, span=span)
        case _:
            raise ValueError(f"no reduction is called {kind!r}")


def accumulator_dtype(kind: str, dtype: str) -> str:
    """Half and smaller floats accumulate in fp32; maxima are exact in any type."""
    if kind in ("sum", "abssum") and dtype.startswith(_HALVES):
        return "float32"
    return dtype


def _extreme(dtype: str, *, lowest: bool, span: TirSpan) -> Any:
    if build.is_float(dtype):
        if dtype.startswith(("float8_", "float6_", "float4_")):  # formats without infinity
            make = tirx.tvm.ir.prim.min_value if lowest else tirx.tvm.ir.prim.max_value
            return make(dtype)
        return build.const(float("-inf") if lowest else float("inf"), dtype, span)
    low, high = _range(dtype)
    return build.const(low if lowest else high, dtype, span)


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    bits = int(dtype.lstrip("uint"))
    if dtype.startswith("uint"):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
