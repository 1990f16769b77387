"""Which register, or which place in shared memory, does an access of a tile mean in this thread?

`TileAccess` rewrites loads, stores and regions of tiles to accesses of the one-dimensional buffers
of their homes. It evaluates the indices of all threads and iterations at once: a register is
found when each thread holds what it touches, in a slot known once loops are unrolled. `Elsewhere`
says that a tile must be reached through shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.closed_form import Lifter, any_holds, divided, lower
from tilelang.ir.homes import REDUCER, Home, row_major, shape_of
from tilelang.ir.index_values import Opaque, evaluate, variables_of
from tilelang.ir.spans import TirSpan
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.expr import Const, Expr, Var
from tilelang.layout.expr import evaluate as substituted
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import linear_index
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.slots import closed_slots, depends_on, owners_reached, slots_of
from tilelang.layout.spread import LANE, Spread, thread_ranges
from tilelang.passes.thread_scope import ThreadScope

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Entries of one table of elements; what needs more is reached through shared memory.
MAX_ENTRIES = 1 << 23


class Elsewhere(Exception):
    """A thread touches an element of `buffer` that it does not hold, or not in a known register."""

    def __init__(self, buffer: Any) -> None:
        super().__init__(str(buffer.name))
        self.buffer = buffer


@dataclass(slots=True, eq=False)
class Nest:
    """The nest being distributed: what its variables are in each (thread, round, lane)."""

    spread: Spread
    values: dict[Any, NDArray[Any]]
    known: dict[Any, Expr]
    replaced: dict[Any, Any]
    round: Any
    lane: Any
    acts: Any = None  # condition under which a thread acts for all copies
    conditions: int = 0  # how many were in force around the nest
    inside: frozenset[Any] = frozenset()  # variables of the loops in its body
    jumps: bool = False  # whether a loop inside may end early


@dataclass(slots=True, eq=False)
class _Elements:
    """The elements of a tile that an access touches, [thread, round, lane, *others]; -1 where
    there is none. `others` are the values of the other axes: first those of `counters`, loops
    inside or around, then those of indices of which nothing is known."""

    table: NDArray[Any]
    others: list[Any] = field(default_factory=list)
    counters: tuple[Any, ...] = ()


class TileAccess(ThreadScope):
    """Rewrites accesses of tiles for one thread; `nest` is the nest around, if any."""

    def __init__(self, func: tirx.PrimFunc) -> None:
        super().__init__(func)
        self.nest: Nest | None = None
        self.staged: dict[Any, Home] = {}
        self.written: set[Any] = set()
        self.filled: set[Any] = set()  # staged tiles of which every element is certainly written
        self.read: set[Any] = set()
        self.replaced: dict[Any, Any] = {}

    # --- accesses ---

    def var(self, e: Any) -> Any:
        if self.nest is not None and e in self.nest.replaced:
            return self.nest.replaced[e]
        if e in self.replaced:
            return self.replaced[e]
        home = self._home(e) if tirx.is_buffer_var(e) else None
        return e if home is None else home.flat

    def load(self, e: Any) -> Any:
        home = self._home(e.source)
        if home is None:
            return super().load(e)
        self.read.add(self._root(e.source))
        place = self._place(home, e.source, list(e.indices), e.span)
        return build.load(home.flat, [place], e.span)

    def store(self, s: Any) -> Any:
        home = self._home(s.buffer)
        if home is None:
            stored = super().store(s)
            local = str(s.buffer.scope()).startswith("local")
            return stored if local else self.acting(stored, s.span)
        if isinstance(home.layout, Fragment):
            return self._store_register(home, s)
        place = self._place(home, s.buffer, list(s.indices), s.span)
        root = self._root(s.buffer)
        if root in self.staged:
            self.written.add(root)
            if self._fills(home, s):
                self.filled.add(root)
        stored = tirx.BufferStore(home.flat, self.any(s.value), [place], s.span)
        private = home.layout is None and str(s.buffer.scope()) != REDUCER
        return stored if private else self.acting(stored, s.span)

    def region(self, e: Any) -> Any:
        region = TileRegion.of(e)
        home = self._home(region.buffer)
        if home is None:
            return super().region(e)
        extents = region.constant_extents
        if any(n is None for n in extents):
            return super().region(e)
        count = math.prod(n for n in extents if n is not None)
        if count > 1 and isinstance(home.layout, Fragment):
            raise Elsewhere(self._root(region.buffer))
        self.read.add(self._root(region.buffer))
        start = self._place(home, region.buffer, list(region.mins), e.span)
        size = build.const(count, "int32", e.span)
        return build.region(home.flat, [(start, size)], e.span)

    def evaluate(self, s: Any) -> Any:
        new = super().evaluate(s)
        return self.acting(new, s.span) if isinstance(s.value, tirx.Call) else new

    def acting(self, stmt: Any, span: TirSpan) -> Any:
        """A statement with an effect outside this thread, by one of those that run it alike."""
        if self.nest is None or self.nest.acts is None:
            return stmt
        return tirx.IfThenElse(self.nest.acts, stmt, None, span)

    # --- homes ---

    def _root(self, buffer: Any) -> Any:
        return self.homes.views.get(buffer, buffer)

    def _home(self, buffer: Any) -> Home | None:
        found = self.staged.get(self._root(buffer))
        return self.homes.find(buffer) if found is None else found

    def _place(self, home: Home, buffer: Any, indices: list[Any], span: TirSpan) -> Any:
        match home.layout:
            case Fragment():
                return self._slot(home, buffer, indices, span)
            case Layout():
                return self._offset(home, buffer, indices, span)
            case None:
                return row_major([self.any(i) for i in indices], shape_of(buffer), span)

    # --- registers ---

    def _slot(self, home: Home, buffer: Any, indices: list[Any], span: TirSpan) -> Any:
        touched = self._elements(buffer, indices)
        held = slots_of(self._layout(home), touched.table)
        if (self._needed(touched) & (held < 0)).any():
            raise Elsewhere(home.buffer)
        return self._register(home, held, touched, span)

    def _register(self, home: Home, held: Any, touched: _Elements, span: TirSpan) -> Any:
        closed = closed_slots(held)
        if closed is None or depends_on(closed, 0):
            # Registers have fixed numbers: one that differs between threads would put the whole
            # tile into local memory.
            raise Elsewhere(home.buffer)
        return lower(closed, [*self._coordinates(span), *touched.others], span)

    def _store_register(self, home: Home, s: Any) -> Any:
        """Only threads that hold the element write it."""
        touched = self._elements(s.buffer, list(s.indices))
        held = slots_of(self._layout(home), touched.table)
        needed = self._needed(touched)
        missing = needed & (held < 0)
        axes = tuple(range(1, held.ndim))
        guard = None
        if missing.any():
            absent = missing.any(axis=axes)
            if (needed & (held >= 0))[absent].any():
                raise Elsewhere(home.buffer)
            present = (needed & (held >= 0)).any(axis=axes)
            if not present.any():
                raise Elsewhere(home.buffer)
            holders = thread_ranges(present, present | absent)
            guard = any_holds(holders, self._coordinates(s.span), s.span)
        layout = self._layout(home)
        written = np.where(needed, touched.table, -1)
        if self.running().all() and not owners_reached(layout, written):
            raise Elsewhere(home.buffer)
        place = self._register(home, held, touched, s.span)
        stored = tirx.BufferStore(home.flat, self.any(s.value), [place], s.span)
        return stored if guard is None else tirx.IfThenElse(guard, stored, None, s.span)

    def _fills(self, home: Home, s: Any) -> bool:
        """Whether a store in a nest certainly reaches every element."""
        if self.nest is None or self.nest.jumps or len(self.conditions) > self.nest.conditions:
            return False
        try:
            touched = self._elements(s.buffer, list(s.indices))
        except Elsewhere:
            return False
        reached = np.unique(touched.table[touched.table >= 0])
        certain = len(touched.others) == len(touched.counters)
        certain = certain and self.nest.inside.issuperset(touched.counters)
        return certain and len(reached) == math.prod(home.shape)

    def _layout(self, home: Home) -> Fragment:
        assert isinstance(home.layout, Fragment)
        return home.layout

    def _elements(self, buffer: Any, indices: list[Any]) -> _Elements:
        """What an access touches, over all threads and iterations."""
        shape = shape_of(buffer)
        used = [v for i in indices for v in variables_of(i, self.bindings)]
        values: dict[Any, Any] = dict(self._values())
        counters = [v for v in dict.fromkeys(used) if v in self.counters and v not in values]
        opaque = [not self._is_known(i, values, counters) for i in indices]
        others: list[Any] = [self._from_zero(v) for v in counters]
        rank = 3 + len(counters) + sum(opaque)
        for axis, var in enumerate(counters):
            values[var] = _along(np.array(self.counters[var]), 3 + axis, rank)
        values = {v: _raised(x, rank) for v, x in values.items()}
        axis = 3 + len(counters)
        total: Any = 0
        outside: Any = False
        for index, extent, unknown in zip(indices, shape, opaque, strict=True):
            if unknown:
                number: Any = _along(np.arange(extent), axis, rank)
                others.append(build.cast(self.any(index), "int32", index.span))
                axis += 1
            else:
                number = np.asarray(evaluate(index, values, self.bindings))
            outside = outside | (number < 0) | (number >= extent)
            total = total * extent + number
        full = np.broadcast_shapes(self._grid_shape(rank), np.shape(total), np.shape(outside))
        if math.prod(full) > MAX_ENTRIES:
            raise Elsewhere(self._root(buffer))
        table = np.where(np.broadcast_to(outside, full), -1, np.broadcast_to(total, full))
        if self.nest is not None:
            idle = _raised(self.nest.spread.elements, rank) < 0
            table = np.where(idle, -1, table)
        return _Elements(table, others, tuple(counters))

    def _is_known(self, index: Any, values: dict[Any, Any], counters: Sequence[Any]) -> bool:
        probe = {**dict.fromkeys(values, 0), **dict.fromkeys(counters, 0)}
        try:
            evaluate(index, probe, self.bindings)
        except (Opaque, ZeroDivisionError):
            return False
        return True

    def _from_zero(self, var: Any) -> Any:
        low = self.counters[var].start
        value = build.cast(self.any(var), "int32", var.span)
        return value if not low else tirx.Sub(value, build.const(low, "int32"), var.span)

    def _needed(self, touched: _Elements) -> Any:
        """Where an element is touched by a thread that may get here."""
        rank = touched.table.ndim
        values = {v: _raised(x, rank) for v, x in self._values().items()}
        mask: Any = touched.table >= 0
        for condition in self.conditions:
            try:
                found = np.asarray(evaluate(condition, values, self.bindings), dtype=bool)
            except Opaque:
                continue
            mask = mask & np.broadcast_to(found, mask.shape)
        return mask

    def _values(self) -> dict[Any, Any]:
        """Loop variables and thread axes, over (thread, round, lane)."""
        found = {v: x.reshape(-1, 1, 1) for v, x in self.threads.values().items()}
        return found if self.nest is None else {**found, **self.nest.values}

    def _grid_shape(self, rank: int) -> tuple[int, ...]:
        if self.nest is None:
            return (self.threads.count, *(1 for _ in range(rank - 1)))
        return (*self.nest.spread.elements.shape, *(1 for _ in range(rank - 3)))

    def _coordinates(self, span: TirSpan) -> list[Any]:
        """Thread, round and lane."""
        zero = build.const(0, "int32", span)
        thread = self.threads.number(span)
        if self.nest is None:
            return [thread, zero, zero]
        return [thread, self.nest.round, self.nest.lane]

    # --- shared memory ---

    def _offset(self, home: Home, buffer: Any, indices: list[Any], span: TirSpan) -> Any:
        layout = home.layout
        assert isinstance(layout, Layout)
        indices = self.homes.resolve(buffer, indices, span)
        if layout == Layout.row_major(layout.shape):
            return row_major([self.any(i) for i in indices], layout.shape, span)
        along = self._runs_along(indices, layout)
        known = {} if self.nest is None else dict(self.nest.known)
        if along:
            known = {v: at_first_lane(e) for v, e in known.items()}
        lifter = _Lifter(self, known, self._coordinates(span))
        lifted = [lifter.lift(i, n) for i, n in zip(indices, layout.shape, strict=True)]
        offset: Expr = linear_index(layout.map(*lifted), layout.out_shape)
        if not along or self.nest is None:
            return lifter.lower(offset, span)
        # A multiple of the lanes, and visibly so.
        lanes = self.nest.spread.lanes
        start = lifter.lower(divided(offset, lanes), span)
        start = build.mul(start, build.const(lanes, "int32", span), span)
        return build.add(start, self.nest.lane, span)

    def _runs_along(self, indices: list[Any], layout: Layout) -> bool:
        """Whether the lanes of a round are neighbours in memory, too."""
        nest = self.nest
        if nest is None or nest.spread.lanes == 1:
            return False
        lanes, steps = nest.spread.lanes, 0
        for dim, index in enumerate(indices):
            if not set(variables_of(index, self.bindings)) & set(nest.values):
                continue
            try:
                values = np.asarray(evaluate(index, self._values(), self.bindings))
            except Opaque:
                return False
            if values.ndim < 3 or values.shape[2] == 1:
                continue
            first = values[:, :, :1]
            if (values == first).all():
                continue
            run = (values == first + np.arange(lanes)) & (first % lanes == 0)
            if not run.all() or layout.vector_width(dim, lanes) != lanes:
                return False
            steps += 1
        return steps == 1

    # --- statements ---

    def alloc(self, s: Any) -> Any:
        flat = s.annotations.get(attrs.FLAT)
        if flat is None:
            return s
        if attrs.VIEW in s.annotations:
            return build.nothing(s.span)
        said = {
            k: v for k, v in dict(s.annotations).items()
            if k not in (attrs.FLAT, attrs.TILE_LAYOUT)
        }  # fmt: skip
        return build.allocate(flat, said, s.span)

    def decl(self, s: Any) -> Any:
        if s.buffer in self.homes.views:
            return build.nothing(s.span)
        return super().decl(s)


class _Lifter(Lifter):
    """Parts of an index that are not understood are rewritten for this thread."""

    def __init__(self, access: TileAccess, known: dict[Any, Expr], values: Sequence[Any]) -> None:
        super().__init__(known, values)
        self._access = access

    def atom(self, value: Any, extent: int = 1 << 40) -> Var:
        return super().atom(self._access.any(value), extent)


def at_first_lane(expr: Expr) -> Expr:
    """`expr` with lane 0."""
    variables = [_variable(expr, position) for position in range(3)]
    variables[LANE] = Const(0)
    found: Expr = substituted(expr, variables)
    return found


def _variable(expr: Expr, position: int) -> Any:
    """The variable of `expr` at `position`, which knows its range."""
    if isinstance(expr, Var):
        return expr if expr.position == position else Const(0)
    for side in (getattr(expr, "lhs", None), getattr(expr, "rhs", None)):
        found = None if side is None else _variable(side, position)
        if isinstance(found, Var):
            return found
    return Const(0)


def _along(numbers: Any, axis: int, rank: int) -> Any:
    return numbers.reshape([-1 if d == axis else 1 for d in range(rank)])


def _raised(values: Any, rank: int) -> Any:
    """An array with axes of extent 1 after its own."""
    array = np.asarray(values)
    return array.reshape(*array.shape, *(1 for _ in range(rank - array.ndim)))
