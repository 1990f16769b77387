"""T.reducer_init, T.reducer_update, T.finalize_reducer: a reduction spread over a loop.

Before: T.reducer_init(acc); for i, j in T.Parallel(..): T.reducer_update(acc[i], x[i, j]);
        T.finalize_reducer(acc, dst)
After, on a CPU: acc is a plain array; init sets it, each update combines, finalize copies.
Updates are scalar statements inside loops: `lower_update` is called by `passes.lower_tile_ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.tile_op import LowerContext, TileOp, TileRegion
from tilelang.ops.combine import combine, identity
from tilelang.ops.copy import Copy
from tilelang.ops.fill import fill_region
from tilelang.ops.reducer_gpu import gpu_reducer_finalize, gpu_reducer_init


@dataclass(frozen=True, slots=True, eq=False)
class ReducerInit(TileOp):
    """Open an epoch: every element starts at `init`, or at the neutral element."""

    NAME: ClassVar[str] = "reducer_init"

    reducer: TileRegion
    init: tirx.Expr | TileRegion | None = None

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.init,) if isinstance(self.init, TileRegion) else ()

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.reducer,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        if isinstance(self.init, TileRegion):
            return Copy(self.init, self.reducer).lower_cpu(ctx)
        value = self.init
        if value is None:
            value = identity(kind_of(ctx, self.reducer), self.reducer.dtype, ctx.span)
        return fill_region(ctx, self.reducer, value)

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return gpu_reducer_init(self, ctx)


@dataclass(frozen=True, slots=True, eq=False)
class ReducerFinalize(TileOp):
    """Close the epoch: the combined values go to `dst`, or stay in place."""

    NAME: ClassVar[str] = "reducer_finalize"

    reducer: TileRegion
    dst: TileRegion | None = None
    batch: int | None = None

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.reducer,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.reducer if self.dst is None else self.dst,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        if self.dst is None:
            return build.nothing(ctx.span)
        return Copy(self.reducer, self.dst).lower_cpu(ctx)

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return gpu_reducer_finalize(self, ctx)


def lower_update(ctx: LowerContext, target: TileRegion, value: tirx.Expr) -> tirx.Stmt:
    """`target = combine(target, value)` for one element of a reducer."""
    kind = kind_of(ctx, target)
    value = build.cast(value, target.dtype, ctx.span)
    return target.store({}, combine(kind, target.load({}), value, ctx.span), ctx.span)


def kind_of(ctx: LowerContext, reducer: TileRegion) -> str:
    """How a reducer combines, from its allocation."""
    return str(ctx.allocation_attr(reducer.buffer, "op", "sum"))
