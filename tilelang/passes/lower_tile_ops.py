"""Each tile operation becomes the loops and scalar statements that do its work.

Before: T.fill(C_l, 0)
After:  for i0, i1 in T.Parallel(64, 64): C_l[i0, i1] = 0
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.ir import attrs, tirx
from tilelang.ir.spans import TirSpan
from tilelang.ir.tile_op import LowerContext, TileRegion, called_op
from tilelang.ir.visit import collect, with_body
from tilelang.ops import OP_BY_NAME
from tilelang.ops.atomic import VECTOR_ATOMICS, lower_vector_atomic
from tilelang.ops.reducer import lower_update
from tilelang.passes.context import PassContext
from tilelang.passes.safe_values import safe_values_of
from tilelang.passes.scoped import ScopedRewriter


def lower_tile_ops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Lower every tile operation for `ctx.target`."""
    lowered = _Lower(func, ctx).any(func.body)
    return with_body(func, lowered).with_attr(attrs.STAGE, "loops")


class _Lower(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._safe = safe_values_of(func)
        self._allocations: Mapping[Any, Any] = {
            s.buffer: dict(s.annotations) for s in collect(func.body, tirx.AllocBuffer)
        }

    def evaluate(self, s: Any) -> Any:
        name = called_op(s)
        if name == "reducer_update":
            target, value = list(s.value.args)
            return lower_update(self._context(s.span), TileRegion.of(target), value)
        if name in VECTOR_ATOMICS:
            return lower_vector_atomic(self._context(s.span), s)
        op = OP_BY_NAME.get(name or "")
        if op is None:
            return super().evaluate(s)
        return op.from_call(s.value).lower(self._context(s.span))

    def _context(self, span: TirSpan) -> LowerContext:
        return LowerContext(
            self._ctx.target, span, self.prover.analyzer, self._allocations, self._safe
        )
