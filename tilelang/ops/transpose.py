"""T.transpose: swap the last two dimensions.

Before: T.transpose(A_s, B_s)
After:  for i0, i1 in T.Parallel(64, 32): B_s[i1, i0] = A_s[i0, i1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.layout_context import LayoutContext
from tilelang.ir.tile_op import LowerContext, TileOp, TileRegion, loop_vars, parallel_nest
from tilelang.layout.constraints import Constraint, Kind, Mode


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(TileOp):
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

    def constrain(self, ctx: LayoutContext) -> Iterator[Constraint]:
        sides = ((self.src, Mode.READ, False), (self.dst, Mode.WRITE, True))
        sizes = [build.int_value(e) for e in self.src.extents]
        known = [size for size in sizes if size is not None]
        found = [ctx.variable(region.buffer) for region, _, _ in sides]
        is_fragment = any(v is not None and v.kind is Kind.FRAGMENT for v in found)
        if not is_fragment or len(known) != len(sizes):
            return
        variables = [tirx.Var(f"i{n}", "int32") for n in range(len(known))]
        nest = ctx.loop([str(ctx.origin.op)], known)
        for region, mode, swapped in sides:
            order = [*variables[:-2], variables[-1], variables[-2]] if swapped else variables
            places = region.place(dict(enumerate(order)))
            access = ctx.access(nest, variables, region.buffer, places, mode, ctx.origin)
            if access is not None:
                yield access

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
