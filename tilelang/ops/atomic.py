"""T.atomic_add, T.atomic_max, T.atomic_min on tiles.

Before: T.atomic_add(C[by * 64, bx * 64], C_l)
After:  for i0, i1 in T.Parallel(64, 64): T.atomic_add(C[by * 64 + i0, bx * 64 + i1], C_l[i0, i1])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, TileOp, TileRegion, loop_vars, parallel_nest
from tilelang.ops.elementwise import pair_regions


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(TileOp):
    """`dst = op(dst, value)` element by element, each update atomic."""

    NAME: ClassVar[str] = "atomic"

    dst: TileRegion
    value: tirx.Expr | TileRegion
    op: str
    memory_order: str | None = None
    use_tma: bool | None = None

    def __post_init__(self) -> None:
        if self.op not in ("add", "max", "min"):
            raise ValueError(f"no tile form of atomic {self.op!r}")

    def reads(self) -> tuple[TileRegion, ...]:
        source = (self.value,) if isinstance(self.value, TileRegion) else ()
        return (*source, self.dst)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        if not isinstance(self.value, TileRegion):
            dims = [d for d, e in enumerate(self.dst.extents) if not build.is_int(e, 1)]
            named = [(f"i{n}", self.dst.extents[d]) for n, d in enumerate(dims)]
            variables = loop_vars(named, ctx.span)
            body = self._update(ctx, dict(zip(dims, variables, strict=True)), self.value)
            return parallel_nest(named, body, variables, ctx.span)
        pairing = pair_regions(ctx, self.value, self.dst)
        value = self.value.load(pairing.src_offsets)
        body = self._update(ctx, pairing.dst_offsets, value)
        inside = build.all_of(
            [c for c in (pairing.src_inside, pairing.dst_inside) if c is not None], ctx.span
        )
        if inside is not None:
            body = tirx.IfThenElse(inside, body, None, ctx.span)
        named = [(v.name, e) for v, e in zip(pairing.variables, pairing.extents, strict=True)]
        return parallel_nest(named, body, list(pairing.variables), ctx.span)

    def _update(
        self, ctx: LowerContext, offsets: dict[int, tirx.Expr], value: tirx.Expr
    ) -> tirx.Stmt:
        place = self.dst.place(offsets)
        ones = [(i, build.const(1, build.dtype_of(i), ctx.span)) for i in place]
        target = build.region(self.dst.buffer, ones, ctx.span)
        said = {"memory_order": self.memory_order} if self.memory_order else None
        operands = [target, build.cast(value, self.dst.dtype, ctx.span)]
        return build.evaluate(
            build.call(f"atomic_{self.op}", operands, attrs=said, span=ctx.span), ctx.span
        )
