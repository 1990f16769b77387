"""What can be decided now is decided now.

Before: for i in range(1): if 0 < M: A[i + 0] = T.if_then_else(True, B[i], 0)      (M >= 1 known)
After:  A[0] = B[0]

Conditions that are certain, loops of no or one iteration, and index arithmetic. Values are left
as the author wrote them: floating-point results never change.
"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.ranges import is_integer
from tilelang.ir import attrs, build, tirx
from tilelang.ir.visit import collect, substitute, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.scoped import ScopedRewriter, is_lazy_select


def simplify(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Decide conditions, drop empty loops, inline loops of one iteration."""
    return with_body(func, Simplifier(func).any(func.body))


class Simplifier(ScopedRewriter):
    """Decides what is certain where it stands."""

    def if_(self, s: Any) -> Any:
        condition = s.condition
        known = self.prover.decides(condition)
        if known:
            return self.any(s.then_case)
        if known is False:
            return build.nothing(s.span) if s.else_case is None else self.any(s.else_case)
        return super().if_(s)

    def for_(self, s: Any) -> Any:
        extent = build.int_value(self.prover.simplify(s.extent))
        if extent is not None and extent <= 0:
            return build.nothing(s.span)
        keeps = attrs.PIPELINED in s.annotations or attrs.PARALLEL in s.annotations
        if extent == 1 and not keeps and not _jumps(s.body):
            return self.any(substitute(s.body, {s.loop_var: s.min}))
        body = super().for_(s)
        return build.nothing(s.span) if build.is_nothing(body.body) else body

    def call(self, e: Any) -> Any:
        if is_lazy_select(e):
            condition, true, false = list(e.args)
            known = self.prover.decides(condition)
            if known is not None:
                return self.any(true if known else false)
        return super().call(e)

    def load(self, e: Any) -> Any:
        indices, changed = self._indices(e.indices)
        return tirx.BufferLoad(e.source, indices, e.span) if changed else e

    def store(self, s: Any) -> Any:
        value = s.value
        new = self.any(value)
        indices, changed = self._indices(s.indices)
        if new is value and not changed:
            return s
        return tirx.BufferStore(s.buffer, new, indices, s.span)

    def _indices(self, indices: Any) -> tuple[list[Any], bool]:
        """Index expressions in their simplest form; ones without arithmetic are left alone."""
        out, changed = [], False
        for index in indices:
            new = self.any(index)
            if is_integer(new) and _has_arithmetic(new):
                new = self.prover.simplify(new)
            changed = changed or new is not index
            out.append(new)
        return out, changed


def _has_arithmetic(expr: Any) -> bool:
    return not isinstance(expr, (tirx.Var, tirx.IntImm, tirx.TensorLoad, tirx.Call))


def _jumps(body: tirx.Stmt) -> bool:
    """Whether `body` may leave the loop around it."""
    return bool(collect(body, tirx.Break) or collect(body, tirx.Continue))
