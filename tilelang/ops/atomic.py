"""T.atomic_add, T.atomic_max, T.atomic_min on tiles.

Before: T.atomic_add(C[by * 64, bx * 64], C_l)
After:  for i0, i1 in T.Parallel(64, 64): T.atomic_add(C[by * 64 + i0, bx * 64 + i1], C_l[i0, i1])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import (
    LowerContext,
    NestOp,
    TileRegion,
    as_operand,
    loop_vars,
    op_of,
    parallel_nest,
)
from tilelang.ops.elementwise import pair_regions


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(NestOp):
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


# Scalar statements that add a few neighbouring elements at once: name -> how many.
VECTOR_ATOMICS: Final = {"atomic_addx2": 2, "atomic_addx4": 4}


def lower_vector_atomic(ctx: LowerContext, stmt: tirx.Stmt) -> tirx.Stmt:
    """One atomic per element where the value is a region; a vector value is left alone."""
    target, value = (as_operand(a) for a in stmt.value.args)
    if not isinstance(value, TileRegion) or ctx.target.split(":")[0] != "cpu":
        return stmt
    lanes = VECTOR_ATOMICS[str(op_of(stmt.value))]
    updates = []
    for lane in range(lanes):
        places = [_lane(region, lane, ctx) for region in (target, value)]
        element = build.load(value.buffer, places[1], ctx.span)
        one = [(i, build.const(1, build.dtype_of(i), ctx.span)) for i in places[0]]
        region = build.region(target.buffer, one, ctx.span)
        operands = [region, build.cast(element, target.dtype, ctx.span)]
        call = build.call("atomic_add", operands, attrs=stmt.value.attrs, span=ctx.span)
        updates.append(build.evaluate(call, ctx.span))
    return build.seq(updates, ctx.span)


def _lane(region: TileRegion, lane: int, ctx: LowerContext) -> list[tirx.Expr]:
    """Indices of element `lane` in the row-major order of `region`."""
    indices = list(region.mins)
    rest = lane
    for dimension in reversed(range(len(indices))):
        extent = build.int_value(region.extents[dimension])
        if extent is None or extent == 1:
            continue
        step = build.const(rest % extent, build.dtype_of(indices[dimension]), ctx.span)
        indices[dimension] = build.add(indices[dimension], step, ctx.span)
        rest //= extent
    return indices
