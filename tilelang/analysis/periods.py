"""After how many steps of a variable does an expression repeat?

`(k + 2) % 3 * 1024` repeats every 3 steps of `k`, whatever `k` is: three values stand for all.
"""

from __future__ import annotations

import math
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.visit import uses

_BOTH = (
    "Add", "Sub", "Mul", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LShift", "RShift", "Div", "Mod", "FloorDiv",
    "FloorMod",
)  # fmt: skip


def period(e: Any, var: Any) -> int | None:
    """The least known P with `e` the same at `var` and `var + P`; None if there is none known."""
    kind = type(e).__name__
    if kind == "IntImm":
        return 1
    if isinstance(e, tirx.Var):
        return None if e.same_as(var) else 1
    if kind == "Cast":
        return period(e.value, var)
    if kind == "Not":
        return period(e.a, var)
    if kind == "FloorMod" and (modulus := build.int_value(e.b)) is not None and modulus > 0:
        return _modulo(e.a, var, modulus)
    if kind == "BitwiseAnd":
        for masked, mask in ((e.a, build.int_value(e.b)), (e.b, build.int_value(e.a))):
            if mask is not None and mask >= 0 and mask & (mask + 1) == 0:
                return _modulo(masked, var, mask + 1)
    if kind in _BOTH:
        return _joined(period(e.a, var), period(e.b, var))
    return None if uses(e, [var]) else 1


def _modulo(e: Any, var: Any, modulus: int) -> int | None:
    """The least known P with `e` at `var` and `var + P` the same modulo `modulus`."""
    kind = type(e).__name__
    if isinstance(e, tirx.Var):
        return modulus if e.same_as(var) else 1
    if kind == "Cast":
        return _modulo(e.value, var, modulus)
    if kind in ("Add", "Sub"):
        return _joined(_modulo(e.a, var, modulus), _modulo(e.b, var, modulus))
    if kind == "Mul":
        for factor, rest in ((build.int_value(e.a), e.b), (build.int_value(e.b), e.a)):
            if factor:
                return _modulo(rest, var, modulus // math.gcd(abs(factor), modulus))
        return _joined(_modulo(e.a, var, modulus), _modulo(e.b, var, modulus))
    if kind == "FloorDiv" and (divisor := build.int_value(e.b)) is not None and divisor > 0:
        return _modulo(e.a, var, modulus * divisor)
    return period(e, var)


def _joined(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else math.lcm(a, b)
