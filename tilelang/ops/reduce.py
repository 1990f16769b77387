"""T.reduce_sum and its family: combine along one dimension.

Before: T.reduce_max(scores, row_max, dim=1, clear=False)
After, on a CPU, along the contiguous dimension (64 running maxima, then a tree):
    for i0:
        lanes[...] = -inf
        for r: for l in T.vectorized(64): lanes[l] = max(lanes[l], scores[i0, r * 64 + l])
        row_max[i0] = max(row_max[i0], lanes combined)
Along another dimension the inner dimensions keep one running value each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilelang.ir import build, tirx
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.tile_op import LowerContext, TileOp, TileRegion, loop_vars, parallel_nest
from tilelang.ir.visit import substitute
from tilelang.ops.combine import accumulator_dtype, combine, identity, prepare
from tilelang.ops.reduce_gpu import gpu_reduce

# Running values of a contiguous reduction: enough vector registers to hide the latency of one
# addition (4 cycles, 2 issued per cycle) without spilling.
_LANES = (64, 32, 16, 8)


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(TileOp):
    """`dst = combine(src over dim)`, or combined with the old `dst` when not `clear`.

    `dim` counts the dimensions of the source buffer; `dst` lacks it or has extent 1 there.
    """

    NAME: ClassVar[str] = "reduce"

    src: TileRegion
    dst: TileRegion
    kind: str
    dim: int = -1
    clear: bool = True
    batch: int | None = None
    nan_propagate: bool = False

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.src,) if self.clear else (self.src, self.dst)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    @property
    def axis(self) -> int:
        """`dim` counted from the front."""
        return self.dim % len(self.src.extents)

    def kept_dims(self) -> list[tuple[int, int]]:
        """(source dimension, destination dimension) of each dimension that stays."""
        others = [d for d in range(len(self.src.extents)) if d != self.axis]
        if len(self.dst.extents) == len(self.src.extents):
            return [(d, d) for d in others]
        if len(self.dst.extents) == len(others):
            return [(d, n) for n, d in enumerate(others)]
        moving = [d for d in others if not build.is_int(self.src.extents[d], 1)]
        landing = [d for d, e in enumerate(self.dst.extents) if not build.is_int(e, 1)]
        return list(zip(moving, landing, strict=True))

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        extents = self.src.constant_extents
        inner = [d for d, _ in self.kept_dims() if d > self.axis and extents[d] != 1]
        if inner and all(extents[d] is not None for d in inner):
            return _Rows(self, ctx, inner).lower()
        return _Lines(self, ctx).lower()

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return gpu_reduce(self, ctx)


class _Lowering:
    """State of one lowering: the kept loops and the accumulator type."""

    def __init__(self, op: Reduce, ctx: LowerContext) -> None:
        self.op, self.ctx, self.span = op, ctx, ctx.span
        self.dtype = accumulator_dtype(op.kind, op.dst.dtype)
        self.kept = [(s, d) for s, d in op.kept_dims() if not build.is_int(op.src.extents[s], 1)]
        named = [(f"i{n}", op.src.extents[s]) for n, (s, _) in enumerate(self.kept)]
        self.named = named
        self.variables = loop_vars(named, ctx.span)
        self.src_at = {s: v for (s, _), v in zip(self.kept, self.variables, strict=True)}
        self.dst_at = {d: v for (_, d), v in zip(self.kept, self.variables, strict=True)}

    def element(self, along: tirx.Expr) -> tirx.Expr:
        """What the element at `along` contributes."""
        loaded = self.op.src.load({**self.src_at, self.op.axis: along})
        return prepare(self.op.kind, build.cast(loaded, self.dtype, self.span), self.span)

    def combined(self, a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
        return combine(self.op.kind, a, b, self.span, nan_propagate=self.op.nan_propagate)

    def neutral(self) -> tirx.Expr:
        return identity(self.op.kind, self.dtype, self.span)

    def finish(self, value: tirx.Expr) -> tirx.Stmt:
        """Write the result of one line."""
        if not self.op.clear:
            old = build.cast(self.op.dst.load(self.dst_at), self.dtype, self.span)
            value = self.combined(old, value)
        value = build.cast(value, self.op.dst.dtype, self.span)
        return self.op.dst.store(self.dst_at, value, self.span)

    def local(self, name: str, shape: Sequence[int]) -> tirx.Buffer:
        """Private storage of the accumulator type."""
        return tirx.decl_buffer(
            list(shape), self.dtype, name=name, scope="local", span=self.span, layout=None
        )


class _Lines(_Lowering):
    """Along the innermost dimension that moves: each line is reduced by itself."""

    def lower(self) -> tirx.Stmt:
        extent = self.op.src.constant_extents[self.op.axis]
        lanes = next((n for n in _LANES if extent is not None and extent >= n), 1)
        partial = self.local("partial", [lanes])
        parts: list[tirx.Stmt] = [
            build.allocate(partial, None, self.span),
            self._each_lane(
                lanes, lambda lane: build.store(partial, [lane], self.neutral(), self.span)
            ),
        ]
        parts += self._accumulate(partial, lanes)
        parts += self._tree(partial, lanes)
        zero = build.const(0, "int32", self.span)
        parts.append(self.finish(build.load(partial, [zero], self.span)))
        body = build.seq(parts, self.span)
        for var, (_, size) in reversed(list(zip(self.variables, self.named, strict=True))):
            body = build.loop(var, size, body, span=self.span)
        return body

    def _accumulate(self, partial: tirx.Buffer, lanes: int) -> list[tirx.Stmt]:
        size = self.op.src.extents[self.op.axis]
        dtype = build.dtype_of(size)
        if lanes == 1:
            along = tirx.Var("r", dtype, self.span)
            zero = build.const(0, "int32", self.span)
            return [build.loop(along, size, self._update(partial, zero, along), span=self.span)]
        constant = build.int_value(size)
        assert constant is not None
        step = tirx.Var("r", dtype, self.span)
        base = build.mul(step, build.const(lanes, dtype), self.span)
        whole = self._each_lane(
            lanes,
            lambda lane: self._update(
                partial, lane, build.add(base, build.cast(lane, dtype), self.span)
            ),
        )
        trips = build.const(constant // lanes, dtype)
        out = [build.loop(step, trips, whole, span=self.span)]
        rest = constant % lanes
        if rest:
            done = build.const(constant - rest, dtype)
            out.append(
                self._each_lane(
                    rest,
                    lambda lane: self._update(
                        partial, lane, build.add(build.cast(lane, dtype), done, self.span)
                    ),
                )
            )
        return out

    def _tree(self, partial: tirx.Buffer, lanes: int) -> list[tirx.Stmt]:
        """Fold the upper half of the lanes onto the lower half until one is left."""
        out = []
        while lanes > 1:
            lanes //= 2
            half = build.const(lanes, "int32", self.span)

            def fold(lane: tirx.Expr, half: tirx.Expr = half) -> tirx.Stmt:
                upper = build.load(partial, [tirx.Add(lane, half, self.span)], self.span)
                lower = build.load(partial, [lane], self.span)
                return build.store(partial, [lane], self.combined(lower, upper), self.span)

            out.append(self._each_lane(lanes, fold))
        return out

    def _update(self, partial: tirx.Buffer, lane: tirx.Expr, along: tirx.Expr) -> tirx.Stmt:
        old = build.load(partial, [lane], self.span)
        return build.store(partial, [lane], self.combined(old, self.element(along)), self.span)

    def _each_lane(self, lanes: int, make: Callable[[tirx.Expr], tirx.Stmt]) -> tirx.Stmt:
        if lanes == 1:
            return make(build.const(0, "int32", self.span))
        lane = tirx.Var("lane", "int32", self.span)
        count = build.const(lanes, "int32", self.span)
        return build.loop(lane, count, make(lane), kind="VECTORIZED", span=self.span)


class _Rows(_Lowering):
    """Along an outer dimension: the dimensions inside it keep one running value each."""

    def __init__(self, op: Reduce, ctx: LowerContext, inner: Sequence[int]) -> None:
        super().__init__(op, ctx)
        self.inner = [n for n, (s, _) in enumerate(self.kept) if s in inner]
        self.outer = [n for n in range(len(self.kept)) if n not in self.inner]

    def lower(self) -> tirx.Stmt:
        shape = [build.int_value(self.named[n][1]) for n in self.inner]
        running = self.local("running", [size for size in shape if size is not None])
        place = [self.variables[n] for n in self.inner]
        along = tirx.Var("r", build.dtype_of(self.op.src.extents[self.op.axis]), self.span)
        old = build.load(running, place, self.span)
        update = build.store(running, place, self.combined(old, self.element(along)), self.span)
        parts = [
            build.allocate(running, None, self.span),
            self._nest(build.store(running, place, self.neutral(), self.span)),
            build.loop(
                along, self.op.src.extents[self.op.axis], self._nest(update), span=self.span
            ),
            self._nest(self.finish(old)),
        ]
        body = build.seq(parts, self.span)
        for n in reversed(self.outer):
            body = build.loop(self.variables[n], self.named[n][1], body, span=self.span)
        return body

    def _nest(self, body: tirx.Stmt) -> tirx.Stmt:
        """`body` for every inner position, in loops of its own."""
        named = [self.named[n] for n in self.inner]
        old = [self.variables[n] for n in self.inner]
        fresh = loop_vars(named, self.span)
        renamed = substitute(body, dict(zip(old, fresh, strict=True)))
        return parallel_nest(named, renamed, fresh, self.span)
