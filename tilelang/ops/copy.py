"""T.copy: move a tile.

Before: T.copy(A[by * 64 : by * 64 + 64, k * 32 : k * 32 + 32], A_s)
After:  for i0, i1 in T.Parallel(64, 32): A_s[i0, i1] = A[by * 64 + i0, k * 32 + i1]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, NestOp, TileRegion, parallel_nest
from tilelang.ops.elementwise import pair_regions


@dataclass(frozen=True, slots=True, eq=False)
class Copy(NestOp):
    """`dst = src` over the matched extents, converting dtype."""

    NAME: ClassVar[str] = "copy"

    src: TileRegion
    dst: TileRegion
    coalesced_width: int | None = None
    disable_tma: bool | None = None
    eviction_policy: Any = None
    prefer_instruction: str | None = None
    loop_layout: Any = None

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.src,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        pairing = pair_regions(ctx, self.src, self.dst)
        value = self.src.load(pairing.src_offsets)
        if pairing.src_inside is not None:
            # Beyond the source's slice the tile is padded, as beyond the edge of the tensor.
            value = build.select(
                pairing.src_inside, value, ctx.zero_of(self.src), lazy=True, span=ctx.span
            )
        value = build.cast(value, self.dst.dtype, ctx.span)
        body = self.dst.store(pairing.dst_offsets, value, ctx.span)
        if pairing.dst_inside is not None:
            body = tirx.IfThenElse(pairing.dst_inside, body, None, ctx.span)
        named = [(v.name, e) for v, e in zip(pairing.variables, pairing.extents, strict=True)]
        return parallel_nest(named, body, list(pairing.variables), ctx.span)
