"""T.cumsum, T.cummax: inclusive prefix along one dimension, possibly in place.

Before: T.cumsum(x, y, dim=0)
After, on a CPU: running[i] = 0; for r: running[i] += x[r, i]; y[r, i] = running[i]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.tile_op import LowerContext, TileOp, TileRegion, loop_vars
from tilelang.ops.combine import accumulator_dtype, combine, identity
from tilelang.ops.scan_gpu import gpu_scan


@dataclass(frozen=True, slots=True, eq=False)
class Scan(TileOp):
    """`dst[.., r, ..] = combine(src[.., : r + 1, ..])`; from the end when `reverse`."""

    NAME: ClassVar[str] = "scan"

    src: TileRegion
    dst: TileRegion
    kind: str
    dim: int = 0
    reverse: bool = False

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.src,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        span = ctx.span
        rank = len(self.src.extents)
        axis = self.dim % rank
        shift = len(self.dst.extents) - rank  # a destination may have more leading ones
        dtype = accumulator_dtype(self.kind, self.dst.dtype)
        running = tirx.decl_buffer(
            [1], dtype, name="running", scope="local", span=span, layout=None
        )
        zero = [build.const(0, "int32", span)]
        others = [d for d in range(rank) if d != axis and not build.is_int(self.src.extents[d], 1)]
        named = [(f"i{n}", self.src.extents[d]) for n, d in enumerate(others)]
        variables = loop_vars(named, span)
        step, place = self._position(ctx, axis)
        at = {**dict(zip(others, variables, strict=True)), axis: place}
        element = build.cast(self.src.load(at), dtype, span)
        total = combine(self.kind, build.load(running, zero, span), element, span)
        result = build.cast(build.load(running, zero, span), self.dst.dtype, span)
        body = build.seq(
            [
                build.store(running, zero, total, span),
                self.dst.store({d + shift: v for d, v in at.items()}, result, span),
            ],
            span,
        )
        line = build.seq(
            [
                build.allocate(running, None, span),
                build.store(running, zero, identity(self.kind, dtype, span), span),
                build.loop(step, self.src.extents[axis], body, span=span),
            ],
            span,
        )
        for var, (_, size) in reversed(list(zip(variables, named, strict=True))):
            line = build.loop(var, size, line, span=span)
        return line

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return gpu_scan(self, ctx)

    def _position(self, ctx: LowerContext, axis: int) -> tuple[tirx.Var, tirx.Expr]:
        """The loop variable along the scanned dimension and the position it stands for."""
        extent = self.src.extents[axis]
        step = tirx.Var("r", build.dtype_of(extent), ctx.span)
        if not self.reverse:
            return step, step
        last = tirx.Sub(extent, build.const(1, build.dtype_of(extent)), ctx.span)
        return step, ctx.simplify(tirx.Sub(last, step, ctx.span))
