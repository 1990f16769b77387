"""Intervals of integer expressions from the ranges of their variables, without TVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tilelang.program import expr as ex
from tilelang.program.arith import constant_value

Interval: TypeAlias = "tuple[int | None, int | None]"
UNBOUNDED: Interval = (None, None)


def interval(expr: ex.Expr, ranges: Mapping[ex.Var, Interval]) -> Interval:
    """The least and greatest value `expr` can take; None where nothing is known."""
    number = constant_value(expr)
    if number is not None:
        return number, number
    match expr:
        case ex.Var(definition=ex.Expr() as definition):
            return interval(definition, ranges)
        case ex.Var():
            return ranges.get(expr, UNBOUNDED)
        case ex.Cast(operand=operand) if expr.dtype.is_integer and operand.dtype.is_integer:
            return interval(operand, ranges)
        case ex.Binary(op=op, left=left, right=right) if expr.dtype.is_integer:
            return _binary(op, interval(left, ranges), interval(right, ranges))
        case ex.Unary(op="-", operand=operand):
            low, high = interval(operand, ranges)
            return (None if high is None else -high, None if low is None else -low)
        case ex.Select(true=true, false=false):
            return _join(interval(true, ranges), interval(false, ranges))
        case _:
            return UNBOUNDED


def _binary(op: str, a: Interval, b: Interval) -> Interval:
    match op:
        case "+":
            return _sum(a[0], b[0]), _sum(a[1], b[1])
        case "-":
            return _sum(a[0], _negative(b[1])), _sum(a[1], _negative(b[0]))
        case "*":
            return _product(a, b)
        case "//" if b[0] == b[1] and b[0] is not None and b[0] > 0:
            divisor = b[0]
            return (None if a[0] is None else a[0] // divisor,
                    None if a[1] is None else a[1] // divisor)  # fmt: skip
        case "%" if b[0] == b[1] and b[0] is not None and b[0] > 0:
            if a[0] is not None and a[1] is not None and a[0] >= 0 and a[1] < b[0]:
                return a
            return 0, b[0] - 1
        case "min":
            highs = [h for h in (a[1], b[1]) if h is not None]
            low = None if a[0] is None or b[0] is None else min(a[0], b[0])
            return low, min(highs) if highs else None
        case "max":
            lows = [low for low in (a[0], b[0]) if low is not None]
            high = None if a[1] is None or b[1] is None else max(a[1], b[1])
            return max(lows) if lows else None, high
        case _:
            return UNBOUNDED


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negative(a: int | None) -> int | None:
    return None if a is None else -a


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        # A non-negative half is still known when both lower ends are non-negative.
        if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
            return a[0] * b[0], None
        return UNBOUNDED
    corners = [x * y for x in a for y in b if x is not None and y is not None]
    return min(corners), max(corners)


def _join(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return low, high
