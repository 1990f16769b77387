"""Between which values does an integer expression lie, and does int32 arithmetic hold it?

Plain interval arithmetic over the loops and bindings around an expression: enough to choose index
widths and cheap divisions, never wrong, and fast. What it cannot bound is computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tilelang.codegen.cpu_types import parse


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"empty interval {self.low}..{self.high}")

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    @property
    def constant(self) -> int | None:
        return self.low if self.low == self.high else None


INT32: Final = Interval(-(1 << 31), (1 << 31) - 1)
INT64: Final = Interval(-(1 << 63), (1 << 63) - 1)
ANY: Final = INT64


class Bounds:
    """Intervals of variables in scope, and of expressions over them."""

    def __init__(self) -> None:
        self._vars: dict[Any, Interval] = {}
        self._rules: dict[str, Callable[[Any], Interval]] = {
            "Add": self._add, "Sub": self._sub, "Mul": self._mul, "FloorDiv": self._floordiv,
            "FloorMod": self._floormod, "Min": self._min, "Max": self._max,
            "Select": self._select, "Cast": self._cast, "BitwiseAnd": self._bitand,
            "RShift": self._rshift, "LShift": self._lshift,
        }  # fmt: skip

    def bind(self, var: Any, interval: Interval) -> None:
        """`var` lies in `interval` from here on."""
        self._vars[var] = interval

    def of(self, expr: Any) -> Interval:
        """Where `expr` lies, supposing none of its parts overflows."""
        kind = type(expr).__name__
        if kind == "IntImm":
            return Interval(int(expr.value), int(expr.value))
        if kind == "Var":
            known = self._vars.get(expr)
            return known if known is not None else dtype_range(str(expr.ty))
        rule = self._rules.get(kind)
        if rule is None:
            if kind == "Call":
                return self._call(expr)
            return dtype_range(str(expr.ty))
        return rule(expr)

    def fits_int32(self, expr: Any) -> bool:
        """Whether `expr` and everything it is computed from stays within int32."""
        return self.of(expr).within(INT32) and all(
            self.fits_int32(child) for child in _operands(expr)
        )

    def _pair(self, e: Any) -> tuple[Interval, Interval]:
        return self.of(e.a), self.of(e.b)

    def _add(self, e: Any) -> Interval:
        a, b = self._pair(e)
        return _clip(a.low + b.low, a.high + b.high)

    def _sub(self, e: Any) -> Interval:
        a, b = self._pair(e)
        return _clip(a.low - b.high, a.high - b.low)

    def _mul(self, e: Any) -> Interval:
        a, b = self._pair(e)
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _clip(min(corners), max(corners))

    def _floordiv(self, e: Any) -> Interval:
        a, b = self._pair(e)
        if b.low <= 0 <= b.high:
            most = max(abs(a.low), abs(a.high))
            return _clip(-most, most)
        corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _clip(min(corners), max(corners))

    def _floormod(self, e: Any) -> Interval:
        a, b = self._pair(e)
        if b.low > 0:
            if a.low >= 0 and a.high < b.low:
                return a
            return Interval(0, max(0, min(b.high - 1, a.high if a.low >= 0 else b.high - 1)))
        most = max(abs(b.low), abs(b.high))
        return _clip(-most, most)

    def _min(self, e: Any) -> Interval:
        a, b = self._pair(e)
        return Interval(min(a.low, b.low), min(a.high, b.high))

    def _max(self, e: Any) -> Interval:
        a, b = self._pair(e)
        return Interval(max(a.low, b.low), max(a.high, b.high))

    def _select(self, e: Any) -> Interval:
        return self.of(e.true_value).hull(self.of(e.false_value))

    def _cast(self, e: Any) -> Interval:
        target = dtype_range(str(e.ty))
        source = parse(str(e.value.ty))
        if not (source.is_integer or source.kind == "bool"):
            return target
        inner = self.of(e.value)
        return inner if inner.within(target) else target

    def _bitand(self, e: Any) -> Interval:
        a, b = self._pair(e)
        positive = [x.high for x in (a, b) if x.low >= 0]
        return Interval(0, min(positive)) if positive else dtype_range(str(e.ty))

    def _rshift(self, e: Any) -> Interval:
        a, b = self._pair(e)
        if a.low < 0 or b.low < 0:
            return dtype_range(str(e.ty))
        return Interval(a.low >> min(b.high, 64), a.high >> b.low)

    def _lshift(self, e: Any) -> Interval:
        a, b = self._pair(e)
        if a.low < 0 or b.low < 0 or b.high > 62:
            return dtype_range(str(e.ty))
        return _clip(a.low << b.low, a.high << b.high)

    def _call(self, e: Any) -> Interval:
        if str(e.op.name) == "prim.if_then_else":
            return self.of(e.args[1]).hull(self.of(e.args[2]))
        return dtype_range(str(e.ty))


def dtype_range(name: str) -> Interval:
    """All values of an integer dtype; everything for what is none."""
    dtype = parse(name).scalar
    if dtype.is_integer or dtype.kind == "bool":
        return Interval(*dtype.integer_range())
    return ANY


def _operands(expr: Any) -> tuple[Any, ...]:
    match type(expr).__name__:
        case "Add" | "Sub" | "Mul" | "FloorDiv" | "FloorMod" | "Min" | "Max":
            return (expr.a, expr.b)
        case "Select":
            return (expr.true_value, expr.false_value)
        case _:
            return ()


def _clip(low: int, high: int) -> Interval:
    return Interval(max(low, INT64.low), min(high, INT64.high)) if low <= high else ANY
