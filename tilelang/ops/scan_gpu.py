"""How do the threads of a block scan a tile? Each line by one thread.

for i in T.Parallel(64): running = 0; for r in range(32): running += x[r, i]; y[r, i] = running
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.ir import build, tirx
from tilelang.ir.gpu_context import GpuContext
from tilelang.ops.combine import accumulator_dtype, combine, identity

if TYPE_CHECKING:
    from tilelang.ops.scan import Scan


def gpu_scan(op: Scan, ctx: GpuContext) -> tirx.Stmt:
    """A nest over the lines."""
    span, rank = ctx.span, len(op.src.extents)
    axis, shift = op.dim % rank, len(op.dst.extents) - rank
    dtype = accumulator_dtype(op.kind, op.dst.dtype)
    running = tirx.decl_buffer([1], dtype, name="running", scope="local", span=span, layout=None)
    zero = [ctx.const(0)]
    others = [d for d in range(rank) if d != axis and not build.is_int(op.src.extents[d], 1)]
    variables = [
        tirx.Var(f"i{n}", build.dtype_of(op.src.extents[d]), span) for n, d in enumerate(others)
    ]
    extent = op.src.extents[axis]
    step = tirx.Var("r", build.dtype_of(extent), span)
    place: tirx.Expr = step
    if op.reverse:
        last = tirx.Sub(extent, build.const(1, build.dtype_of(extent)), span)
        place = ctx.simplify(tirx.Sub(last, step, span))
    at = {**dict(zip(others, variables, strict=True)), axis: place}
    element = build.cast(op.src.load(at), dtype, span)
    own = build.load(running, zero, span)
    body = build.seq(
        [
            build.store(running, zero, combine(op.kind, own, element, span), span),
            op.dst.store({d + shift: v for d, v in at.items()},
                         build.cast(own, op.dst.dtype, span), span),
        ],
        span,
    )  # fmt: skip
    line = build.seq(
        [
            build.allocate(running, None, span),
            build.store(running, zero, identity(op.kind, dtype, span), span),
            build.loop(step, extent, body, span=span),
        ],
        span,
    )
    return ctx.nest(variables, [op.src.extents[d] for d in others], line)
