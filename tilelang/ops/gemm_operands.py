"""How does a warp get an operand of its matrix instructions into registers?

From shared memory by `ldmatrix`, which hands each lane of a warp its part of 8x8 matrices whose
rows are 16 bytes of memory; transposed on the way for 16-bit elements stored the other way
round. Other elements are loaded one by one. From a fragment, when it already lies right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.choices import Rejected
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.closed_form import Lifter, divided, lower
from tilelang.ir.device_ops import call, region
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.homes import Home
from tilelang.ir.index_values import Opaque, evaluate, variables_of
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.atoms import Atom
from tilelang.layout.expr import Const, Expr
from tilelang.layout.expr import evaluate as substituted
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import WarpGrid, operand_a, operand_b
from tilelang.layout.index_map import linear_index, unflatten
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.slots import closed_slots, depends_on, slots_of
from tilelang.layout.spread import Spread

CHUNK_BITS = 128  # the row of a matrix of `ldmatrix`
ROWS = 8


@dataclass(frozen=True, slots=True, eq=False)
class RegisterTile:
    """Blocks of `count` registers each: `at(block, block)` is the first of one.

    `allocate` goes before the loop over K, `fill` into it.
    """

    buffer: tirx.Buffer
    count: int
    at: Callable[[tirx.Expr, tirx.Expr], tirx.Expr]
    allocate: tuple[tirx.Stmt, ...] = ()
    fill: tuple[tirx.Stmt, ...] = ()

    @property
    def dtype(self) -> str:
        return str(self.buffer.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A or B of a gemm whose warps form a grid.

    `block` are the rows and columns of one instruction's part as it is stored, `blocks` how many
    of them a warp has outside K, `origin` where a warp's begin. `along_k` is the dimension of the
    stored tile that runs along K.
    """

    ctx: GpuContext
    source: TileRegion
    atom: Fragment
    bits: int
    wanted: Fragment
    blocks: int
    k_blocks: int
    k_first: bool
    along_k: int
    warp: Expr
    home: Home | None = None

    @staticmethod
    def of_a(
        ctx: GpuContext, source: TileRegion | Placed, atom: Atom, grid: WarpGrid, m: int, k: int,
        transposed: bool,
    ) -> Operand:  # fmt: skip
        """Operand A, stored (m, k), or (k, m)."""
        region_, home = _split(source)
        rows = m // grid.m_warps
        warp = ctx.thread_var // atom.threads % grid.m_warps * rows
        return Operand(
            ctx, region_, atom.a.permute((1, 0)) if transposed else atom.a, atom.bits,
            operand_a(m, k, grid, atom, transposed), rows // atom.m, k // atom.k, False,
            0 if transposed else 1, warp, home,
        )  # fmt: skip

    @staticmethod
    def of_b(
        ctx: GpuContext, source: TileRegion | Placed, atom: Atom, grid: WarpGrid, k: int, n: int,
        transposed: bool,
    ) -> Operand:  # fmt: skip
        """Operand B, stored (k, n), or (n, k)."""
        region_, home = _split(source)
        columns = n // grid.n_warps
        warp = ctx.thread_var // atom.threads // grid.m_warps * columns
        return Operand(
            ctx, region_, atom.b.permute((1, 0)) if transposed else atom.b, atom.bits,
            operand_b(k, n, grid, atom, transposed), columns // atom.n, k // atom.k, True,
            1 if transposed else 0, warp, home,
        )  # fmt: skip

    @staticmethod
    def lies_right(
        ctx: GpuContext, source: TileRegion, atom: Atom, grid: WarpGrid, which: str,
        transposed: bool,
    ) -> bool:  # fmt: skip
        """Whether a fragment lies as the instruction wants it."""
        sizes = [build.int_value(e) or 0 for e in source.extents[-2:]]
        first, second = sizes[::-1] if transposed else sizes
        make = Operand.of_a if which == "a" else Operand.of_b
        operand = make(ctx, source, atom, grid, first, second, transposed)
        return operand._held() is not None

    @staticmethod
    def placed(source: TileRegion, home: Home) -> Placed:
        """A tile of the compiler's own, which no allocation of the function mentions yet."""
        return Placed(source, home)

    # --- loading ---

    def load(self, name: str, k: tirx.Var) -> RegisterTile:
        """The registers of all blocks at step `k` of the loop over K."""
        held = None if self._is_shared() else self._held()
        if held is not None and not self._is_rounded():
            return held
        ctx, span = self.ctx, self.ctx.span
        count = self.atom.slots
        registers = tirx.decl_buffer(
            [ctx.const(self.blocks * count)], self.source.dtype, name=name, scope="local",
            data_alignment=64, span=span, layout=None,
        )  # fmt: skip
        if held is not None:
            fill = [self._copied(registers, held, k)]
        else:
            fill = [self._from_shared(registers, k)]
        if self._is_rounded():
            fill.append(self._rounded(registers))
        size = ctx.const(count)
        return RegisterTile(
            registers, count, lambda block, _: build.mul(block, size, span),
            (build.allocate(registers, None, span),), tuple(fill),
        )  # fmt: skip

    def _is_shared(self) -> bool:
        home = self._home()
        return home is not None and isinstance(home.layout, Layout)

    def _home(self) -> Home | None:
        return self.home or self.ctx.homes.find(self.source.buffer)

    def _is_rounded(self) -> bool:
        """Whether the instruction takes fewer bits of each value than there are."""
        family = self.ctx.machine.family
        return family is not None and family.seen_as(self.source.dtype) != self.source.dtype

    def _held(self) -> RegisterTile | None:
        blocks = (self.k_blocks, self.blocks) if self.k_first else (self.blocks, self.k_blocks)
        found = held_slots(self.ctx, self.source, self.wanted, blocks)
        if found is None or not self.k_first:
            return found
        at = found.at
        return RegisterTile(found.buffer, found.count, lambda block, k: at(k, block))

    def _copied(self, registers: tirx.Buffer, held: RegisterTile, k: tirx.Var) -> tirx.Stmt:
        ctx, span = self.ctx, self.ctx.span
        block, r = ctx.var("block"), ctx.var("r")
        source = build.load(held.buffer, [build.add(held.at(block, k), r, span)], span)
        place = build.add(build.mul(block, ctx.const(held.count), span), r, span)
        store = build.store(registers, [place], source, span)
        return ctx.unrolled(block, self.blocks, ctx.unrolled(r, held.count, store))

    def _rounded(self, registers: tirx.Buffer) -> tirx.Stmt:
        """Values as the tensor cores take them: nearest, not cut off."""
        ctx, span = self.ctx, self.ctx.span
        r = ctx.var("r")
        value = build.load(registers, [r], span)
        rounded = call("to_tf32", [value], dtype="float32", span=span)
        store = build.store(registers, [r], rounded, span)
        return ctx.unrolled(r, self.blocks * self.atom.slots, store)

    def _from_shared(self, registers: tirx.Buffer, k: tirx.Var) -> tirx.Stmt:
        why = self._why_no_matrices()
        if why is None:
            return self._by_matrices(registers, k)
        loads, what = self._one_by_one(registers, k)
        has = self.ctx.capabilities.has_ldmatrix
        rejected = [Rejected("ldmatrix", why)] if has else []
        self.ctx.chose("operand", f"`{self.source.buffer.name}` {what}", rejected=rejected)
        return loads

    # --- ldmatrix ---

    def _by_matrices(self, registers: tirx.Buffer, k: tirx.Var) -> tirx.Stmt:
        """One `ldmatrix` for up to four matrices, whose rows are chunks of 16 bytes."""
        wide = CHUNK_BITS // self.bits
        contiguous = self._contiguous(wide)
        transposed = self.along_k != contiguous
        ctx, span = self.ctx, self.ctx.span
        along = self.atom.shape[self.along_k] // (ROWS if transposed else wide)
        across = self.atom.shape[1 - self.along_k] // ROWS
        per_block = along * across
        group = max(g for g in (1, 2, 4) if g * per_block <= 4 and self.blocks % g == 0)
        matrices = group * per_block
        lifter = ctx.lifter()
        block = ctx.var("block")
        step, part = lifter.atom(k, self.k_blocks), lifter.atom(block, self.blocks // group)
        lane = ctx.thread_var % self.ctx.machine.warp
        which = lane // ROWS % matrices
        # Registers of a lane: rows of A first, then k; of B only k.
        outside: Expr = which % across * ROWS + which // per_block * (across * ROWS)
        inside: Expr = which // across % along
        outside = self.warp + part * (group * across * ROWS) + outside
        depth = step * self.atom.shape[self.along_k]
        place: list[Any] = [outside, outside]
        if transposed:
            place[self.along_k] = depth + inside * ROWS + lane % ROWS
        else:
            place[self.along_k] = depth + inside * wide
            place[1 - self.along_k] = outside + lane % ROWS
        home = self._home()
        assert home is not None
        offset = self._offset(lifter, home, place[0], place[1], wide)
        name = f"ldmatrix_x{matrices}{'_trans' if transposed else ''}"
        count = self.atom.slots * group
        first = build.mul(block, ctx.const(count), span)
        operands = [region(registers, first, count, span), region(home.flat, offset, wide, span)]
        load = build.evaluate(call(name, operands, span=span), span)
        many = f"{self.blocks // group} a warp and step" if self.blocks > group else "1 a step"
        ctx.chose("operand", f"`{self.source.buffer.name}` by {name}, {many}")
        return ctx.unrolled(block, self.blocks // group, load)

    def _contiguous(self, wide: int) -> int | None:
        """The dimension of the tile along which `wide` elements lie together."""
        home = self._home()
        assert home is not None and isinstance(home.layout, Layout)
        rank = len(home.layout.shape)
        for dim in (1, 0) if rank == 2 else (1,):
            if home.layout.vector_width(rank - 2 + dim, wide) == wide:
                return dim
        return None

    def _why_no_matrices(self) -> str | None:
        """What keeps `ldmatrix` from loading the operand."""
        wide, name = CHUNK_BITS // self.bits, self.source.buffer.name
        if not self.ctx.capabilities.has_ldmatrix:
            return f"{self.ctx.target} has none"
        if self.bits > 32:
            return f"it moves elements of up to 32 bits, not {self.bits}"
        contiguous = self._contiguous(wide)
        if contiguous is None:
            return f"no {wide} neighbours of `{name}` lie in 16 bytes of its layout"
        if self.along_k != contiguous and self.bits != 16:
            return f"K is not the contiguous dimension of `{name}`, and it transposes only 16 bits"
        if self.source.buffer in self.ctx.homes.views:
            return f"`{name}` shows another tile in another shape"
        if find_dtype(self.source.dtype).bits != self.bits:
            return f"elements of {self.source.dtype} become others on the way"
        start = self.ctx.analyzer.modular_set(self.source.mins[contiguous - 2])
        if int(start.coeff) % wide or int(start.base) % wide:
            return f"the part of `{name}` may start at no multiple of {wide} elements"
        return None

    def _offset(
        self, lifter: Lifter, home: Home, row: Expr, column: Expr, unit: int = 1
    ) -> tirx.Expr:
        """Where in shared memory an element of the operand lies, at a multiple of `unit`."""
        source, ctx = self.source, self.ctx
        rank = len(source.mins)
        shape = [build.int_value(d) for d in source.buffer.shape]
        index: list[Expr] = [lifter.lift(low, n) for low, n in zip(source.mins, shape, strict=True)]
        index[rank - 2] = index[rank - 2] + row
        index[rank - 1] = index[rank - 1] + column
        if source.buffer in ctx.homes.views:
            index = list(unflatten(linear_index(index, [n or 1 for n in shape]), home.shape))
        offset = physical(home.layout, index)
        if unit == 1:
            return lifter.lower(offset, ctx.span)
        return build.mul(lifter.lower(divided(offset, unit), ctx.span), ctx.const(unit), ctx.span)

    # --- one by one ---

    def _one_by_one(self, registers: tirx.Buffer, k: tirx.Var) -> tuple[tirx.Stmt, str]:
        """Each register by itself, neighbours together; and how that reads."""
        ctx, span = self.ctx, self.ctx.span
        spread = Spread.of(self.atom, self.ctx.machine.warp)
        home = self._home()
        assert spread is not None and home is not None and isinstance(home.layout, Layout)
        wide = (
            spread.lanes > 1
            and spread.dim == 1
            and (
                home.layout.vector_width(limit=spread.lanes) == spread.lanes
                and self.source.buffer not in ctx.homes.views
                and self._starts_at_multiple(spread.lanes)
            )
        )
        lifter = ctx.lifter()
        block, turn, lane = ctx.var("block"), ctx.var("r"), ctx.var("v")
        step, part = lifter.atom(k, self.k_blocks), lifter.atom(block, self.blocks)
        round_ = lifter.atom(turn, spread.rounds)
        position: Expr = Const(0) if wide else lifter.atom(lane, spread.lanes)
        of_lane = ctx.thread_var % ctx.machine.warp
        within = [substituted(c, (of_lane, round_, position)) for c in spread.coordinates]
        along_k, outside = self.along_k, 1 - self.along_k
        index: list[Any] = [0, 0]
        index[along_k] = step * self.atom.shape[along_k] + within[along_k]
        index[outside] = self.warp + part * self.atom.shape[outside] + within[outside]
        unit = spread.lanes if wide else 1
        offset = self._offset(lifter, home, index[0], index[1], unit)
        if wide:
            offset = build.add(offset, lane, span)
        place = build.add(
            build.add(
                build.mul(block, ctx.const(self.atom.slots), span),
                build.mul(turn, ctx.const(spread.lanes), span), span,
            ),
            lane, span,
        )  # fmt: skip
        body = build.store(registers, [place], build.load(home.flat, [offset], span), span)
        count = ctx.const(spread.lanes)
        kind = "VECTORIZED" if wide else "UNROLLED"
        body = build.loop(lane, count, body, kind=kind, span=span)
        loads = ctx.unrolled(block, self.blocks, ctx.unrolled(turn, spread.rounds, body))
        size = self.bits * spread.lanes // 8
        return loads, f"{size} bytes at a time" if wide else "element by element"

    def _starts_at_multiple(self, lanes: int) -> bool:
        start = self.ctx.analyzer.modular_set(self.source.mins[-1])
        return int(start.coeff) % lanes == 0 and int(start.base) % lanes == 0


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A region with the home of its buffer."""

    source: TileRegion
    home: Home


def _split(source: TileRegion | Placed) -> tuple[TileRegion, Home | None]:
    return (source.source, source.home) if isinstance(source, Placed) else (source, None)


def physical(layout: Any, index: Sequence[Expr]) -> Expr:
    """The offset that a layout gives an index."""
    found: Expr = linear_index(layout.map(*index), layout.out_shape)
    return found


def held_slots(
    ctx: GpuContext, source: TileRegion, wanted: Fragment, blocks: tuple[int, int],
    home: Home | None = None,
) -> RegisterTile | None:  # fmt: skip
    """The registers of a region of a fragment, in `blocks` of an instruction each, if every
    thread holds there what `wanted` says and neighbours lie side by side."""
    home = home or ctx.homes.find(source.buffer)
    if home is None or not isinstance(home.layout, Fragment):
        return None
    count = wanted.slots // (blocks[0] * blocks[1])
    spread = Spread.of(wanted, ctx.threads)
    if spread is None:
        return None
    found = (v for e in source.mins for v in variables_of(e, ctx.bindings))
    used = list(dict.fromkeys(found))
    if any(v not in ctx.counters for v in used):
        return None
    elements = _elements(ctx, source, wanted, spread, used)
    if elements is None:
        return None
    table = slots_of(home.layout, elements)
    if (table < 0).any():
        return None
    table = table.reshape(ctx.threads, *blocks, count, *table.shape[2:])
    steps = np.arange(count).reshape(count, *(1 for _ in used))
    if not np.array_equal(table, table[:, :, :, :1] + steps):
        return None
    closed = closed_slots(table)
    if closed is None or depends_on(closed, 0):
        return None

    def at(i: tirx.Expr, j: tirx.Expr) -> tirx.Expr:
        starts = [build.const(ctx.counters[v].start, "int32", ctx.span) for v in used]
        steps = [
            v if build.is_int(low, 0) else tirx.Sub(v, low, ctx.span)
            for v, low in zip(used, starts, strict=True)
        ]
        values = [ctx.thread, i, j, ctx.const(0), *steps]
        return lower(closed, values, ctx.span)

    return RegisterTile(home.flat, count, at)


def _elements(
    ctx: GpuContext, source: TileRegion, wanted: Fragment, spread: Spread, used: Sequence[Any]
) -> Any:
    """The element of the tile that each slot of `wanted` stands for, [thread, slot, *counters]."""
    shape = [build.int_value(d) for d in source.buffer.shape]
    if any(n is None for n in shape):
        return None
    places = unflatten(spread.elements.reshape(ctx.threads, -1), wanted.shape)
    rank, extra = len(shape), len(used)
    values: dict[Any, Any] = {}
    for axis, var in enumerate(used):
        numbers = np.array(ctx.counters[var], dtype=np.int64)
        values[var] = numbers.reshape([1, 1, *(-1 if d == axis else 1 for d in range(extra))])
    total: Any = 0
    for d, (low, extent) in enumerate(zip(source.mins, shape, strict=True)):
        try:
            index = evaluate(low, values, ctx.bindings)
        except Opaque:
            return None
        if d >= rank - 2:
            place = places[d - (rank - 2)]
            index = index + place.reshape(*place.shape, *(1 for _ in used))
        total = total * extent + index
    counts = [len(ctx.counters[v]) for v in used]
    return np.broadcast_to(total, (ctx.threads, wanted.slots, *counts))
