"""What numbers does an index take, over all threads and iterations at once?

`evaluate` computes TIRX integer expressions over NumPy arrays. What depends on memory, on the
block, or on sizes known only when the kernel runs raises `Opaque`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.visit import collect
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
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise Opaque
    a, b = evaluate(e.a, values, bindings), evaluate(e.b, values, bindings)
    if kind in _DIVISIONS and not np.all(b):
        raise Opaque
    return operation(a, b)


def variables_of(e: Any, bindings: Mapping[Any, Any]) -> list[Any]:
    """The variables `e` depends on, through names in `bindings` too."""
    out: list[Any] = []
    for var in collect(e, tirx.Var):
        out += variables_of(bindings[var], bindings) if var in bindings else [var]
    return out


def _is_lazy(e: Any) -> bool:
    name = str(getattr(getattr(e, "op", None), "name", ""))
    return isinstance(e, tirx.Call) and name == "prim.if_then_else"


def _truncated(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


_DIVISIONS: Final = ("FloorDiv", "FloorMod", "Div", "Mod")
_OPERATIONS: Final[Mapping[str, Any]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b, "FloorMod": lambda a, b: a % b, "Div": _truncated,
    "Mod": lambda a, b: a - b * _truncated(a, b),
    "BitwiseXor": lambda a, b: a ^ b, "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b, "LShift": lambda a, b: a << b, "RShift": lambda a, b: a >> b,
    "Min": lambda a, b: np.minimum(a, b), "Max": lambda a, b: np.maximum(a, b),
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    "And": lambda a, b: np.logical_and(a, b), "Or": lambda a, b: np.logical_or(a, b),
}  # fmt: skip
