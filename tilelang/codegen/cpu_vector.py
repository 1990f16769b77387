"""Can a short vectorised loop be one vector statement?

A loop `for v in T.vectorized(n)` over a plain store becomes a store of n lanes, which LLVM can
keep in registers even where a loop over memory would stay in memory. Whatever is not that simple
stays a loop, and LLVM's vectoriser decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilelang.codegen import cpu_math
from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_builder import Val, integer
from tilelang.codegen.cpu_expr import Expressions, dtype_of, mentions

_MOST_LANES: Final = 64
_LINEAR = ("Add", "Sub", "Mul")


def vector_form(x: Expressions, loop: Any) -> Callable[[], None] | None:
    """How to emit `loop` as one vector statement, or None when it must stay a loop."""
    lanes = x.bounds.of(loop.extent).constant
    body, var = loop.body, loop.loop_var
    if lanes is None or not 2 <= lanes <= _MOST_LANES or lanes & (lanes - 1):
        return None
    if type(body).__name__ != "BufferStore" or types.is_nibble(x.memory.view(body.buffer).dtype):
        return None
    view = x.memory.view(body.buffer)
    if view.dtype.lanes != 1 or not _contiguous(x, view, list(body.indices), var):
        return None
    if not _vectorizable(x, body.value, var):
        return None

    def emit() -> None:
        start = x.value(loop.min)
        steps = x.b.pack([integer(i, start.base) for i in range(lanes)])
        ramp = x.b.binary("add", steps, start)
        value = _Lanes(x, var, start, ramp, lanes).value(body.value)
        source = dtype_of(body.value)
        if source.base != view.dtype.base:
            value = types.convert(x.b, value, source, view.dtype)
        x.values[var] = start
        offset = x.memory.offset(view, [x.index(i) for i in body.indices])
        x.memory.store(view, offset, x.b.splat(value, lanes))

    return emit


class _Lanes:
    """Evaluates an expression with the loop variable standing for all its values at once."""

    def __init__(self, x: Expressions, var: Any, start: Val, ramp: Val, lanes: int) -> None:
        self.x, self.var, self.start, self.ramp, self.lanes = x, var, start, ramp, lanes

    def value(self, e: Any) -> Val:
        x = self.x
        previous = x.load_hook
        x.load_hook = self._load
        x.values[self.var] = self.ramp
        try:
            return x.value(e)
        finally:
            x.load_hook = previous

    def _load(self, e: Any) -> Val:
        x = self.x
        view = x.memory.view(e.source)
        steps = [_step(i, self.var) for i in e.indices]
        x.values[self.var], x.load_hook = self.start, None
        try:
            offset = x.memory.offset(view, [x.index(i) for i in e.indices])
            moves = any(step != 0 for step in steps)
            return x.memory.load(view, offset, self.lanes if moves else 1)
        finally:
            x.values[self.var], x.load_hook = self.ramp, self._load


def _contiguous(x: Expressions, view: Any, indices: Sequence[Any], var: Any) -> bool:
    """Whether consecutive values of `var` address consecutive elements."""
    if not indices or view.strides[-1].ref != "1":
        return False
    steps = [_step(i, var) for i in indices]
    return steps[-1] == 1 and all(step == 0 for step in steps[:-1])


def _vectorizable(x: Expressions, e: Any, var: Any) -> bool:
    """Whether `e` can be computed for all lanes at once: unconditionally, without gathers."""
    kind = type(e).__name__
    match kind:
        case "IntImm" | "FloatImm" | "Var":
            return True
        case "TensorLoad":
            view = x.memory.view(e.source)
            if types.is_nibble(view.dtype) or view.dtype.lanes != 1:
                return False
            indices = list(e.indices)
            if all(_step(i, var) == 0 for i in indices):
                return True
            return _contiguous(x, view, indices, var)
        case "Cast":
            return _vectorizable(x, e.value, var)
        case "Select":
            parts = (e.condition, e.true_value, e.false_value)
            return all(_vectorizable(x, p, var) for p in parts)
        case "Call":
            name = str(getattr(e.op, "name", "")).rpartition(".")[2]
            known = cpu_math.knows(name) and (name in cpu_math.POLYNOMIALS or name in _CHEAP)
            return known and all(_vectorizable(x, a, var) for a in e.args)
        case "Not" | "BitwiseNot":
            return _vectorizable(x, e.a, var)
        case "Ramp" | "Broadcast" | "Shuffle" | "Let":
            return False
        case _:
            if not (hasattr(e, "a") and hasattr(e, "b")):
                return False
            return _vectorizable(x, e.a, var) and _vectorizable(x, e.b, var)


_CHEAP = ("sqrt", "rsqrt", "floor", "ceil", "trunc", "fabs", "nearbyint", "round", "copysign")


def _step(e: Any, var: Any) -> int | None:
    """By how much `e` grows when `var` grows by one; None when that is not constant."""
    kind = type(e).__name__
    if kind in ("IntImm", "FloatImm"):
        return 0
    if kind == "Var":
        return 1 if e.same_as(var) else 0
    if kind == "Cast":
        return _step(e.value, var)
    if kind not in _LINEAR:
        return None if mentions(e, var) else 0
    a, b = _step(e.a, var), _step(e.b, var)
    if a is None or b is None:
        return None
    if kind == "Add":
        return a + b
    if kind == "Sub":
        return a - b
    if a == 0 and b == 0:
        return 0
    factor, moving = (e.a, b) if a == 0 else (e.b, a)
    constant = type(factor).__name__ == "IntImm"
    return moving * int(factor.value) if constant else None
