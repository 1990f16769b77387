"""What numbers does an index take, over all threads and iterations at once?

`evaluate` computes TIRX integer expressions over NumPy arrays. What depends on memory, on the
block, or on sizes known only when the kernel runs raises `Opaque`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.visit import collect
from tilelang.layout.arrays import DIVISIONS, OPERATIONS
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = "Mapping[Any, int | NDArray[np.int64]]"


class Opaque(Exception):
    """The value of an expression is not known before the kernel runs."""


def evaluate(e: Any, values: Values, bindings: Mapping[Any, Any]) -> Any:
    """`e` as an int or an array; names in `bindings` stand for their values."""
    if isinstance(e, tirx.IntImm):
        return int(e.value)
    if isinstance(e, tirx.Var):
        if e in values:
            return values[e]
        if e in bindings:
            return evaluate(bindings[e], values, bindings)
        raise Opaque
    kind = type(e).__name__
    if kind == "Cast":
        if not build.dtype_of(e).startswith(("int", "uint", "bool")):
            raise Opaque
        return evaluate(e.value, values, bindings)
    if kind == "Not":
        return np.logical_not(evaluate(e.a, values, bindings))
    if kind == "Select" or _is_lazy(e):
        parts = list(e.args) if kind == "Call" else [e.condition, e.true_value, e.false_value]
        return np.where(*(evaluate(p, values, bindings) for p in parts))
    name = _NAMES.get(kind)
    if name is None:
        raise Opaque
    a, b = evaluate(e.a, values, bindings), evaluate(e.b, values, bindings)
    if name in DIVISIONS and not np.all(b):
        raise Opaque
    return OPERATIONS[name](a, b)


def variables_of(e: Any, bindings: Mapping[Any, Any]) -> list[Any]:
    """The variables `e` depends on, through names in `bindings` too."""
    out: list[Any] = []
    for var in collect(e, tirx.Var):
        out += variables_of(bindings[var], bindings) if var in bindings else [var]
    return out


def _is_lazy(e: Any) -> bool:
    name = str(getattr(getattr(e, "op", None), "name", ""))
    return isinstance(e, tirx.Call) and name == "prim.if_then_else"


# What TIRX calls the operations of `layout/arrays.py`.
_NAMES: Final[Mapping[str, str]] = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "Div": "truncdiv",
    "Mod": "truncmod", "BitwiseXor": "^", "BitwiseAnd": "&", "BitwiseOr": "|", "LShift": "<<",
    "RShift": ">>", "Min": "min", "Max": "max", "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=",
    "GT": ">", "GE": ">=", "And": "and", "Or": "or",
}  # fmt: skip
