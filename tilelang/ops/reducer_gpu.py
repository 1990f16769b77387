"""How do the threads of a block keep and combine the parts of a reducer?

Every thread has registers for the whole reducer. An epoch begins with the neutral element in all
of them; at its end each element is combined over the block, and with the value it started at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call
from tilelang.ir.gpu_context import STAGE_SCOPE, GpuContext
from tilelang.ir.homes import row_major, shape_of
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.layout import Layout
from tilelang.layout.loops import replicated
from tilelang.ops.combine import combine, identity
from tilelang.ops.reduce_gpu import ALL_LANES, complete_lanes

if TYPE_CHECKING:
    from tilelang.ops.reducer import ReducerFinalize, ReducerInit


def gpu_reducer_init(op: ReducerInit, ctx: GpuContext) -> tirx.Stmt:
    """The neutral element everywhere; a start value in one thread."""
    from tilelang.ops.reducer import kind_of

    span, buffer = ctx.span, op.reducer.buffer
    neutral = identity(kind_of(ctx, op.reducer), op.reducer.dtype, span)
    variables = [ctx.var(f"i{n}") for n in range(len(buffer.shape))]
    value: Any = neutral
    if op.init is not None:
        start = op.init
        if isinstance(start, TileRegion):
            start = start.load(_matched(start, variables))
        start = build.cast(start, op.reducer.dtype, span)
        one = tirx.EQ(ctx.thread, ctx.const(0), span)
        value = build.select(one, start, neutral, lazy=True, span=span)
    home = ctx.homes.find(buffer)
    assert home is not None
    body = build.store(home.flat, [row_major(variables, shape_of(buffer), span)], value, span)
    for var, extent in reversed(list(zip(variables, shape_of(buffer), strict=True))):
        body = ctx.unrolled(var, extent, body)
    return body


def gpu_reducer_finalize(op: ReducerFinalize, ctx: GpuContext) -> tirx.Stmt:
    """Combine over the lanes of each warp, then over the warps."""
    from tilelang.ops.reducer import kind_of

    span, home = ctx.span, ctx.homes.find(op.reducer.buffer)
    assert home is not None
    kind, dtype = kind_of(ctx, op.reducer), op.reducer.dtype
    shape = shape_of(op.reducer.buffer)
    size = math.prod(shape)
    stmts: list[tirx.Stmt] = []
    lanes = complete_lanes(ctx.threads, ctx.machine.warp)
    mask = lanes // 2
    while mask:
        slot = ctx.var("slot")
        own = build.load(home.flat, [slot], span)
        operands = [own, ctx.const(mask), build.const(ALL_LANES, "uint32", span)]
        other = call("shfl_xor", operands, dtype=dtype, span=span)
        update = build.store(home.flat, [slot], combine(kind, own, other, span), span)
        stmts.append(ctx.unrolled(slot, size, update))
        mask //= 2
    if lanes < ctx.threads:
        stmts += _across_warps(ctx, home.flat, kind, dtype, size, lanes)
    if op.dst is not None:
        stmts.append(_write(op, ctx, shape))
    return build.seq(stmts, span)


def _across_warps(
    ctx: GpuContext, flat: tirx.Buffer, kind: str, dtype: str, size: int, lanes: int
) -> list[tirx.Stmt]:
    """Groups of `lanes` threads, warps as a rule, whose threads all have the same by now."""
    span, thread, warps = ctx.span, ctx.thread_var, ctx.threads // lanes
    allocate, stage = ctx.tile(
        f"{flat.name}_warps", (warps, size), dtype, STAGE_SCOPE, Layout.row_major((warps, size))
    )
    slot = ctx.var("slot")
    write = build.store(
        stage.buffer, [ctx.number(thread // lanes), slot], build.load(flat, [slot], span), span
    )
    first = tirx.EQ(ctx.number(thread % lanes), ctx.const(0), span)
    again, other = ctx.var("slot"), ctx.var("warp")
    own = build.load(flat, [again], span)
    element = build.load(stage.buffer, [other, again], span)
    total = build.seq(
        [
            build.store(flat, [again], identity(kind, dtype, span), span),
            ctx.unrolled(
                other, warps, build.store(flat, [again], combine(kind, own, element, span), span)
            ),
        ],
        span,
    )
    return [
        allocate,
        tirx.IfThenElse(first, ctx.unrolled(slot, size, write), None, span),
        ctx.unrolled(again, size, total),
    ]


def _write(op: ReducerFinalize, ctx: GpuContext, shape: tuple[int, ...]) -> tirx.Stmt:
    """Every thread knows the totals."""
    assert op.dst is not None
    variables = [ctx.var(f"i{n}") for n in range(len(shape))]
    value = build.load(op.reducer.buffer, variables, ctx.span)
    place = _matched(op.dst, variables)
    body = op.dst.store(place, build.cast(value, op.dst.dtype, ctx.span), ctx.span)
    layout = ctx.fragment(op.dst)
    everyone = None
    if layout is None and ctx.homes.fragment(op.dst.buffer) is not None:
        everyone = replicated(shape, ctx.threads)
    spread = layout if layout is not None and layout.shape == shape else everyone
    return ctx.nest(variables, shape, body, spread)


def _matched(region: TileRegion, variables: list[Any]) -> dict[int, Any]:
    """The variables along the dimensions of `region` that are not 1, from the right."""
    moving = [d for d, e in enumerate(region.extents) if not build.is_int(e, 1)]
    if len(moving) == len(variables):
        return dict(zip(moving, variables, strict=True))
    back = min(len(region.extents), len(variables))
    rank = len(region.extents)
    return {rank - n: variables[-n] for n in range(1, back + 1)}
