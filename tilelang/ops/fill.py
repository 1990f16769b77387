"""T.fill, T.clear: set every element of a tile.

Before: T.fill(C_l, 0)
After:  for i0, i1 in T.Parallel(64, 64): C_l[i0, i1] = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, NestOp, TileRegion, loop_vars, parallel_nest


@dataclass(frozen=True, slots=True, eq=False)
class Fill(NestOp):
    """`dst[...] = value`."""

    NAME: ClassVar[str] = "fill"

    dst: TileRegion
    value: tirx.Expr | TileRegion

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.value,) if isinstance(self.value, TileRegion) else ()

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        value = self.value.load({}) if isinstance(self.value, TileRegion) else self.value
        return fill_region(ctx, self.dst, value)


def fill_region(ctx: LowerContext, dst: TileRegion, value: tirx.Expr) -> tirx.Stmt:
    """A nest that stores `value` everywhere in `dst`."""
    dims = [d for d, e in enumerate(dst.extents) if not build.is_int(e, 1)]
    named = [(f"i{n}", dst.extents[d]) for n, d in enumerate(dims)]
    variables = loop_vars(named, ctx.span)
    body = dst.store(dict(zip(dims, variables, strict=True)), value, ctx.span)
    return parallel_nest(named, body, variables, ctx.span)
