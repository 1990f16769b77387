"""T.transpose: swap the last two dimensions.

Before: T.transpose(A_s, B_s)
After:  for i0, i1 in T.Parallel(64, 32): B_s[i1, i0] = A_s[i0, i1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, NestOp, TileRegion, loop_vars, parallel_nest


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(NestOp):
    """`dst[..., j, i] = src[..., i, j]`."""

    NAME: ClassVar[str] = "transpose"

    src: TileRegion
    dst: TileRegion

    def __post_init__(self) -> None:
        if len(self.src.extents) < 2 or len(self.dst.extents) < 2:
            raise ValueError("transpose needs at least two dimensions on each side")

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.src,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        rank = len(self.src.extents)
        shift = len(self.dst.extents) - rank
        named = [(f"i{d}", e) for d, e in enumerate(self.src.extents)]
        variables = loop_vars(named, ctx.span)
        src_at = dict(enumerate(variables))
        swapped = {**src_at, rank - 1: variables[rank - 2], rank - 2: variables[rank - 1]}
        dst_at = {d + shift: v for d, v in swapped.items()}
        value = build.cast(self.src.load(src_at), self.dst.dtype, ctx.span)
        body = self.dst.store(dst_at, value, ctx.span)
        return parallel_nest(named, body, variables, ctx.span)
