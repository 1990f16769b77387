"""How do the threads of a block reduce a tile together?

Each thread combines what it holds of a line in a register of its own; threads that hold parts of
one line then exchange by shuffles, and warps through shared memory:

    for i, j in T.Parallel(64, 64): part[i] = max(part[i], scores[i, j])      (each for itself)
    part[…] = max(part[…], shfl_xor(part[…], 2)); …; shfl_xor(part[…], 1)
    for i in T.Parallel(64): row_max[i] = part[i]

Where the registers of the tile do not allow that, or the tile is not in registers, its elements
are dealt out anew: a line to as many lanes of a warp as keep all threads busy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call
from tilelang.ir.gpu_context import STAGE_SCOPE, GpuContext
from tilelang.ir.homes import FRAGMENT, Home, unflattened
from tilelang.layout.digits import Digit
from tilelang.layout.expr import Const, Expr
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.ops.combine import accumulator_dtype, combine, identity, prepare

if TYPE_CHECKING:
    from tilelang.ops.reduce import Reduce

ALL_LANES = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Part:
    """Threads that hold parts of one line differ by multiples of `stride` below `extent`."""

    stride: int
    extent: int


def gpu_reduce(op: Reduce, ctx: GpuContext) -> tirx.Stmt:
    """Reduce in registers, by shuffles, through shared memory."""
    extents = op.src.constant_extents
    if any(e is None for e in extents):
        return _by_lines(op, ctx)
    layout = ctx.fragment(op.src)
    parts = None if layout is None else parts_of_line(layout, op.axis, ctx.machine.warp)
    if layout is None or parts is None or not _complete(parts, ctx):
        return _Dealt(op, ctx).lower()
    return _Held(op, ctx, layout, parts).lower()


def complete_lanes(threads: int, warp: int) -> int:
    """Into groups of how many neighbours, a power of two, a warp falls with nobody missing. The
    last warp of 48 threads has 16: who shuffles with the others there reads what is nowhere."""
    return min(warp, threads & -threads)


def _complete(parts: Sequence[Part], ctx: GpuContext) -> bool:
    """Whether all threads that exchange by shuffles exist."""
    warp = ctx.machine.warp
    lanes = complete_lanes(ctx.threads, warp)
    return all(p.stride * p.extent <= lanes for p in parts if p.stride < warp)


def parts_of_line(layout: Fragment, axis: int, warp: int) -> tuple[Part, ...] | None:
    """How the threads of a line differ; None where shuffles cannot bring them together."""
    form = layout.map.digits
    if form is None or form.xors or form.outputs[0].offset:
        return None
    digits = sorted(form.outputs[0].digits, key=lambda d: d.stride)
    parts: list[Part] = []
    for n, digit in enumerate(digits):
        above = digits[n + 1].stride if n + 1 < len(digits) else None
        if above is not None and digit.stride * digit.extent > above:
            return None
        if digit.dim != axis:
            continue
        found = _split(digit, above, warp)
        if found is None:
            return None
        parts += found
    return tuple(parts)


def _split(digit: Digit, above: int | None, warp: int) -> list[Part] | None:
    """The part within a warp, rounded up to a power of two, and the part across warps."""
    stride, extent = digit.stride, digit.extent
    if stride % warp == 0:
        return [Part(stride, extent)]
    if stride & (stride - 1):
        return None
    inner = min(1 << (extent - 1).bit_length(), warp // stride)
    outer = -(-extent // inner)
    if above is not None and stride * inner * outer > above:
        return None
    found = [Part(stride, inner)]
    return found if outer == 1 else [*found, Part(stride * inner, outer)]


class _Threads:
    """A reduction into `part`, a register tile of what each thread has combined so far."""

    def __init__(self, op: Reduce, ctx: GpuContext) -> None:
        self.op, self.ctx, self.span = op, ctx, ctx.span
        self.dtype = accumulator_dtype(op.kind, op.dst.dtype)
        self.stmts: list[tirx.Stmt] = []

    def reduce(
        self, shape: Sequence[int], partial: Fragment, parts: Sequence[Part], update: Any
    ) -> Home:
        """Registers of `shape`, laid out as `partial`, that hold the totals; `update(home)` are
        the statements with which a thread combines what it holds."""
        allocate, home = self.ctx.tile(
            f"{self.op.dst.buffer.name}_part", shape, self.dtype, FRAGMENT, partial
        )
        slot = self.ctx.var("slot")
        neutral = identity(self.op.kind, self.dtype, self.span)
        fill = build.store(home.flat, [slot], neutral, self.span)
        self.stmts += [allocate, self.ctx.unrolled(slot, partial.slots, fill), update(home)]
        inner = [p for p in parts if p.stride < self.ctx.machine.warp]
        outer = [p for p in parts if p.stride >= self.ctx.machine.warp]
        self._shuffle(home, partial.slots, inner)
        if outer:
            self._across_warps(home, shape, partial, inner, outer)
        return home

    def combined(self, a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
        return combine(self.op.kind, a, b, self.span, nan_propagate=self.op.nan_propagate)

    def updated(self, home: Home, index: Sequence[tirx.Expr], element: tirx.Expr) -> tirx.Stmt:
        """Combine `element` of the source into `home[index]`."""
        value = prepare(self.op.kind, build.cast(element, self.dtype, self.span), self.span)
        old = build.load(home.buffer, index, self.span)
        return build.store(home.buffer, index, self.combined(old, value), self.span)

    def final(self, value: tirx.Expr, place: dict[int, tirx.Expr]) -> tirx.Stmt:
        """Write a total to the destination."""
        if not self.op.clear:
            old = build.cast(self.op.dst.load(place), self.dtype, self.span)
            value = self.combined(old, value)
        return self.op.dst.store(place, build.cast(value, self.op.dst.dtype, self.span), self.span)

    def _shuffle(self, home: Home, slots: int, parts: Sequence[Part]) -> None:
        masks = [p.stride << b for p in parts for b in range((p.extent - 1).bit_length())]
        for mask in sorted(masks, reverse=True):
            slot = self.ctx.var("slot")
            own = build.load(home.flat, [slot], self.span)
            operands = [own, self.ctx.const(mask), build.const(ALL_LANES, "uint32", self.span)]
            other = call("shfl_xor", operands, dtype=self.dtype, span=self.span)
            update = build.store(home.flat, [slot], self.combined(own, other), self.span)
            self.stmts.append(self.ctx.unrolled(slot, slots, update))

    def _across_warps(
        self, home: Home, shape: Sequence[int], partial: Fragment, inner: Sequence[Part],
        outer: Sequence[Part],
    ) -> None:  # fmt: skip
        """One lane of each warp writes its part of a line; all read all parts."""
        ctx = self.ctx
        count = math.prod(p.extent for p in outer)
        thread = ctx.thread_var
        own: Expr = Const(0)
        for part in outer:
            own = own * part.extent + thread // part.stride % part.extent
        allocate, stage = ctx.tile(
            f"{self.op.dst.buffer.name}_warps", (count, *shape), self.dtype, STAGE_SCOPE,
            Layout.row_major((count, *shape)),
        )  # fmt: skip
        variables = [ctx.var(f"i{n}") for n in range(len(shape))]
        value = build.load(home.buffer, variables, self.span)
        write = build.store(stage.buffer, [ctx.number(own), *variables], value, self.span)
        acts = build.all_of(
            [
                tirx.EQ(ctx.number(thread // p.stride % p.extent), ctx.const(0), self.span)
                for p in inner
            ],
            self.span,
        )
        if acts is not None:
            write = tirx.IfThenElse(acts, write, None, self.span)
        again = [ctx.var(f"i{n}") for n in range(len(shape))]
        warp = ctx.var("warp")
        element = build.load(stage.buffer, [warp, *again], self.span)
        old = build.load(home.buffer, again, self.span)
        body = build.seq(
            [
                build.store(
                    home.buffer, again, identity(self.op.kind, self.dtype, self.span), self.span
                ),
                ctx.unrolled(
                    warp, count,
                    build.store(home.buffer, again, self.combined(old, element), self.span),
                ),
            ],
            self.span,
        )  # fmt: skip
        self.stmts += [
            allocate,
            ctx.nest(variables, shape, write, partial, every_copy=True),
            ctx.nest(again, shape, body, partial, every_copy=True),
        ]


class _Held(_Threads):
    """The source is in registers whose layout lets threads of a line meet."""

    def __init__(
        self, op: Reduce, ctx: GpuContext, layout: Fragment, parts: tuple[Part, ...]
    ) -> None:
        super().__init__(op, ctx)
        self.layout, self.parts = layout, parts

    def lower(self) -> tirx.Stmt:
        op, ctx = self.op, self.ctx
        shape = self.layout.shape
        kept = [d for d in range(len(shape)) if d != op.axis]
        partial = self.layout.reduce(op.axis)
        variables = [ctx.var(f"i{d}") for d in range(len(shape))]
        index = [variables[d] for d in kept] or [ctx.const(0)]

        def update(home: Home) -> tirx.Stmt:
            element = op.src.load(dict(enumerate(variables)))
            body = self.updated(home, index, element)
            return ctx.nest(variables, shape, body, self.layout, every_copy=True)

        home = self.reduce(partial.shape, partial, self.parts, update)
        ends = [ctx.var(f"i{d}") for d in range(len(partial.shape))]
        named = dict(zip(kept, ends, strict=False))
        place = {d: named[s] for s, d in op.kept_dims()}
        body = self.final(build.load(home.buffer, ends, self.span), place)
        self.stmts.append(ctx.nest(ends, partial.shape, body, partial))
        return build.seq(self.stmts, self.span)


class _Dealt(_Threads):
    """The source is dealt out: line `q` to a group of lanes, its elements in turn."""

    def lower(self) -> tirx.Stmt:
        op, ctx = self.op, self.ctx
        extents = [n for n in op.src.constant_extents if n is not None]
        kept = [(s, d) for s, d in op.kept_dims()]
        sizes = [extents[s] for s, _ in kept]
        lines, along = math.prod(sizes), extents[op.axis]
        layout, lanes = dealt(lines, along, ctx.threads, ctx.machine.warp)
        line, step = ctx.var("line"), ctx.var("r")

        def update(home: Home) -> tirx.Stmt:
            spread = unflattened(line, sizes, self.span) if sizes else []
            at = dict(zip((s for s, _ in kept), spread, strict=True))
            element = op.src.load({**at, op.axis: step})
            return ctx.nest(
                [line, step], [lines, along], self.updated(home, [line], element), layout,
                every_copy=True,
            )  # fmt: skip

        partial = layout.reduce(1)
        home = self.reduce((lines,), partial, [Part(1, lanes)] if lanes > 1 else [], update)
        end = ctx.var("line")
        spread = unflattened(end, sizes, self.span) if sizes else []
        place: dict[int, Any] = dict(zip((d for _, d in kept), spread, strict=True))
        body = self.final(build.load(home.buffer, [end], self.span), place)
        self.stmts.append(ctx.nest([end], [lines], body, partial))
        return build.seq(self.stmts, self.span)


def dealt(lines: int, along: int, threads: int, warp: int) -> tuple[Fragment, int]:
    """Lines times elements on threads: each line on the same number of lanes of one warp."""
    # None is idle in the first round.
    lanes = min(complete_lanes(threads, warp), 1 << (along.bit_length() - 1))
    while lanes > 1 and lines * lanes > 2 * threads:
        lanes //= 2
    groups = max(1, min(threads // lanes, lines))

    def fn(line: Any, r: Any) -> tuple[Any, Any]:
        rounds = -(-along // lanes)
        return line % groups * lanes + r % lanes, line // groups * rounds + r // lanes

    return Fragment((lines, along), fn), lanes


def _by_lines(op: Reduce, ctx: GpuContext) -> tirx.Stmt:
    """Sizes known only at run time: a thread reduces a line by itself."""
    span = ctx.span
    dtype = accumulator_dtype(op.kind, op.dst.dtype)
    kept = [(s, d) for s, d in op.kept_dims() if not build.is_int(op.src.extents[s], 1)]
    variables = [tirx.Var(f"i{n}", build.dtype_of(op.src.extents[s]), span)
                 for n, (s, _) in enumerate(kept)]  # fmt: skip
    at = {s: v for (s, _), v in zip(kept, variables, strict=True)}
    place = {d: v for (_, d), v in zip(kept, variables, strict=True)}
    total = tirx.decl_buffer([1], dtype, name="total", scope="local", span=span, layout=None)
    zero = [ctx.const(0)]
    step = tirx.Var("r", build.dtype_of(op.src.extents[op.axis]), span)
    threads = _Threads(op, ctx)
    element = build.cast(op.src.load({**at, op.axis: step}), dtype, span)
    value = threads.combined(build.load(total, zero, span), prepare(op.kind, element, span))
    body = build.seq(
        [
            build.allocate(total, None, span),
            build.store(total, zero, identity(op.kind, dtype, span), span),
            build.loop(step, op.src.extents[op.axis], build.store(total, zero, value, span),
                       span=span),
            threads.final(build.load(total, zero, span), place),
        ],
        span,
    )  # fmt: skip
    return ctx.nest(variables, [op.src.extents[s] for s, _ in kept], body)
