"""How does one core multiply tiles?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, loop_vars, parallel_nest
from tilelang.ops.fill import fill_region

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm


def cpu_gemm(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    """Loops over rows, the reduction, and columns innermost: rows of C and B are contiguous."""
    return build.seq([clear_accumulator(op, ctx), _accumulate(op, ctx)], ctx.span)


def clear_accumulator(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    """Zero C when the operation says so, possibly only at run time."""
    if op.overwrites is False:
        return build.nothing(ctx.span)
    clear = fill_region(ctx, op.C, build.const(0, op.C.dtype, ctx.span))
    if op.overwrites:
        return clear
    condition = build.cast(op.clear_accum, "bool", ctx.span)
    return tirx.IfThenElse(condition, clear, None, ctx.span)


def _accumulate(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    span, dtype = ctx.span, op.C.dtype
    m, k, n = loop_vars([("m", op.m), ("k", op.k), ("n", op.n)], span)
    rank = len(op.C.extents)
    place = {rank - 2: m, rank - 1: n}
    product = tirx.Mul(
        build.cast(op.load_a(m, k), dtype, span), build.cast(op.load_b(k, n), dtype, span), span
    )
    body = op.C.store(place, tirx.Add(op.C.load(place), product, span), span)
    body = parallel_nest([("n", op.n)], body, [n], span)
    body = build.loop(k, op.k, body, span=span)
    return build.loop(m, op.m, body, span=span)
