"""How do the expressions of layouts and of TIRX become each other?

`lower` writes a layout's expression over TIRX values. `Lifter` goes the other way: an index
becomes an expression whose parts have known ranges, so that what a layout makes of it simplifies
(`(r*16 + t//8) % 8` is `t//8` for 64 threads) without asking a prover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Final, assert_never

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.layout.expr import Binary, Const, Expr, Var, bounds, evaluate
from tilelang.layout.spread import AnyOf, Below

INDEX: Final = "int32"
# Bounds of a value nothing is known about: far above any index of a tile.
_FAR: Final = 1 << 40
_LIFTED: Final = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "BitwiseXor": "^",
}  # fmt: skip


def lower(expr: Expr | int, values: Sequence[tirx.Expr], span: TirSpan) -> tirx.Expr:
    """`expr` with `values` for its variables, as 32-bit integers."""
    match expr:
        case int():
            return build.const(expr, INDEX, span)
        case Const():
            return build.const(expr.value, INDEX, span)
        case Var():
            return build.cast(values[expr.position], INDEX, span)
        case Binary():
            if expr.op == "^" and (parts := _above_mask(expr)) is not None:
                high, low = parts
                return build.add(lower(high, values, span), lower(low, values, span), span)
            left, right = lower(expr.lhs, values, span), lower(expr.rhs, values, span)
            return _binary(expr.op, left, right, span)
        case _ as never:
            assert_never(never)


def _above_mask(expr: Binary) -> tuple[Expr, Expr] | None:
    """`(high + low) ^ mask` as `high` and `low ^ mask`, where the mask only reaches `low`.

    Device compilers do not find that by themselves, and then keep an address for each unrolled
    place instead of one address and many offsets: in attention they spilled registers for it.
    """
    most = bounds(expr.rhs)
    unit = 1 << most[1].bit_length()
    if most[0] < 0 or most[1] >= _FAR:
        return None
    terms = _terms(expr.lhs)
    high = [t for t in terms if _is_multiple(t, unit)]
    low = [t for t in terms if not _is_multiple(t, unit)]
    ranges = [bounds(t) for t in low]
    if not high or any(r[0] < 0 for r in ranges) or sum(r[1] for r in ranges) >= unit:
        return None
    return reduce(add, high), reduce(add, low, Const(0)) ^ expr.rhs


def _terms(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == "+":
        return [*_terms(expr.lhs), *_terms(expr.rhs)]
    return [expr]


def _binary(op: str, left: tirx.Expr, right: tirx.Expr, span: TirSpan) -> tirx.Expr:
    if op == "+":
        return build.add(left, right, span)
    if op == "*":
        return build.mul(left, right, span)
    if op in ("//", "%") and build.is_int(left, 0):
        return left
    return build.binary(op, left, right, span)


def holds(condition: Below, values: Sequence[tirx.Expr], span: TirSpan) -> tirx.Expr:
    """A condition of a spread over TIRX values."""
    value = lower(condition.value, values, span)
    if condition.limit == condition.low + 1:
        return tirx.EQ(value, build.const(condition.low, INDEX, span), span)
    test: tirx.Expr = tirx.LT(value, build.const(condition.limit, INDEX, span), span)
    if condition.low:
        low = tirx.GE(value, build.const(condition.low, INDEX, span), span)
        test = tirx.And(low, test, span)
    return test


def all_hold(
    conditions: Sequence[Below], values: Sequence[tirx.Expr], span: TirSpan
) -> tirx.Expr | None:
    """Their conjunction; None where nothing is demanded."""
    return build.all_of([holds(c, values, span) for c in conditions], span)


def any_holds(alternatives: AnyOf, values: Sequence[tirx.Expr], span: TirSpan) -> tirx.Expr | None:
    """Their disjunction; None where one of them always holds."""
    result: tirx.Expr | None = None
    for conditions in alternatives:
        one = all_hold(conditions, values, span)
        if one is None:
            return None
        result = one if result is None else tirx.Or(result, one, span)
    return build.const(False, "bool", span) if result is None else result


def divided(expr: Expr, unit: int) -> Expr:
    """`expr // unit`, a power of two that divides it; also inside of an exclusive or."""
    if isinstance(expr, Binary) and expr.op == "^":
        return divided(expr.lhs, unit) ^ divided(expr.rhs, unit)
    if isinstance(expr, Binary) and expr.op == "+" and _is_multiple(expr.lhs, unit):
        return divided(expr.lhs, unit) + divided(expr.rhs, unit)
    return expr // unit


def _is_multiple(expr: Expr, unit: int) -> bool:
    """Whether a power of two visibly divides `expr`."""
    match expr:
        case Const():
            return expr.value % unit == 0
        case Binary("*", _, Const(value)) if value % unit == 0:
            return True
        case Binary("+" | "^" | "-", left, right):
            return _is_multiple(left, unit) and _is_multiple(right, unit)
        case Binary("%", inner, Const(value)) if value % unit == 0:
            return _is_multiple(inner, unit)
        case _:
            return False


class Lifter:
    """Index expressions as expressions over `values`, which grows as unknown parts turn up.

    `known` says which expression a TIRX variable stands for; its variables are numbered like
    `values`, of the given extents.
    """

    def __init__(
        self,
        known: Mapping[tirx.Var, Expr],
        values: Sequence[tirx.Expr] = (),
        bindings: Mapping[tirx.Var, tirx.Expr] | None = None,
    ) -> None:
        self.known = known
        self.values = list(values)
        self.bindings = bindings or {}
        self._atoms: dict[Any, Expr] = {}

    def atom(self, value: tirx.Expr, extent: int = _FAR) -> Var:
        """A new variable that stands for `value`."""
        self.values.append(value)
        return Var(len(self.values) - 1, extent)

    def lift(self, e: tirx.Expr, extent: int | None = None) -> Expr:
        """`e`; what is not understood counts as anything below `extent`."""
        if isinstance(e, tirx.IntImm):
            return Const(int(e.value))
        if isinstance(e, tirx.Cast) and build.dtype_of(e).startswith(("int", "uint")):
            if build.dtype_of(e.value).startswith(("int", "uint")):
                return self.lift(e.value, extent)
        if isinstance(e, tirx.Var) and e in self.known:
            return self.known[e]
        op = _LIFTED.get(type(e).__name__)
        if op is None:
            return self._opaque(e, extent)
        left, right = self.lift(e.a), self.lift(e.b)
        if op in ("//", "%") and not isinstance(right, Const):
            return self._opaque(e, extent)
        found: Expr = evaluate(_PLAIN[op], (left, right))
        return found

    def lower(self, expr: Expr, span: TirSpan) -> tirx.Expr:
        """An expression over `values`."""
        return lower(expr, self.values, span)

    def _opaque(self, e: tirx.Expr, extent: int | None) -> Expr:
        if isinstance(e, tirx.Var):
            found = self._atoms.get(e)
            if found is None:
                found = self._atoms[e] = self.atom(e, extent or _FAR)
            return found
        return self.atom(e, extent or _FAR)


def _operators() -> dict[str, Expr]:
    a, b = Var(0, _FAR), Var(1, _FAR)
    return {"+": a + b, "-": a - b, "*": a * b, "//": a // b, "%": a % b, "^": a ^ b}


_PLAIN: Final[Mapping[str, Expr]] = _operators()
