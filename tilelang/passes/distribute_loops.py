"""Parallel loops over tiles become what one thread does.

Before: for i, j in T.Parallel(64, 64): C_l[i, j] = C_l[i, j] * scale[i]
After:  for r in unrolled(32): C_l[r] = C_l[r] * scale[r // 16]

A loop runs where its layout says: a thread's iterations are rounds of lanes, the lanes a
vectorised loop. Iterations that do not exist are guarded; where several threads run the same one,
one of them writes to memory. A tile that lies elsewhere than where it is touched is put into
shared memory before, and taken from there afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelang.analysis.once import stores_for_one_thread
from tilelang.analysis.ranges import written_buffers
from tilelang.analysis.uniform import Uniformity
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.closed_form import all_hold, any_holds, lower
from tilelang.ir.homes import FRAGMENT, PRIVATE, REDUCER, Home, allocate_home
from tilelang.ir.index_values import Opaque, evaluate
from tilelang.ir.nests import nest, nest_extents, nest_loops, opens_nest
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.visit import collect, storage_roots, uses, with_body
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import unflatten
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.loops import ordinary
from tilelang.layout.relations import index_facts, through
from tilelang.layout.spread import ALWAYS, Spread
from tilelang.passes.context import PassContext
from tilelang.passes.single_thread import SingleThread
from tilelang.passes.thread_scope import WARP_SPECIALIZED, group_of, neighbours, written_at
from tilelang.passes.tile_access import Elsewhere, Nest, TileAccess, at_first_lane
from tilelang_diagnostics.model import Label

VECTOR_BITS = 128
STAGE_SCOPE = "shared.dyn"
# A loop over more rounds than this stays a loop, unless its rounds name registers.
UNROLLED_ROUNDS = 16


def distribute_loops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Rewrite `func` for one thread."""
    return with_body(func, _Distribute(func, ctx).any(func.body))


class _Distribute(TileAccess):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._body = func.body
        self._once = stores_for_one_thread(func.body)
        self._single = SingleThread()

    # --- statements ---

    def for_(self, s: Any) -> Any:
        if not opens_nest(s):
            new = super().for_(s)
            if self.nest is not None:
                return build.seq(self._counted_once(s, _inside_nest(new)), s.span)
            parts = self._counted_once(s, new)
            whole = build.seq([*parts[:-1], self._single.gathered(parts[-1])], s.span)
            return self._single.gathered(whole) if len(parts) > 1 else whole
        if self.nest is not None:
            return self.for_(_serial(s))
        return self._through_shared(lambda: self._nest(s), s.span)

    def _counted_once(self, s: Any, new: Any) -> list[Any]:
        """A loop over as many iterations as there were when it began, whatever is stored inside."""
        counted = {self._root(x.source) for x in collect(s.extent, tirx.TensorLoad)}
        if not counted & {self._root(b) for b in written_buffers(s.body)}:
            return [new]
        count = tirx.Var(f"{s.loop_var.name}_count", build.dtype_of(new.extent), s.span)
        loop = tirx.For(
            new.loop_var, new.min, count, new.kind, new.body, new.thread_binding, new.annotations,
            new.step, new.span,
        )  # fmt: skip
        return [tirx.Bind(count, new.extent, s.span), loop]

    def store(self, s: Any) -> Any:
        if self.nest is not None:
            return super().store(s)
        return self._through_shared(lambda: self._store_once(s), s.span)

    def _store_once(self, s: Any) -> Any:
        stored = TileAccess.store(self, s)
        # What a block adds to a reducer outside of loops counts once, too.
        once = str(s.buffer.scope()) == REDUCER or s in self._once
        if not once or self.threads.count == 1:
            return stored
        first = tirx.EQ(self.threads.number(s.span), build.const(0, "int32", s.span), s.span)
        return self._single.only(first, stored, s.span)

    def seq(self, s: Any) -> Any:
        return self._single.gathered(super().seq(s))

    def while_(self, s: Any) -> Any:
        return self._single.gathered(super().while_(s))

    def evaluate(self, s: Any) -> Any:
        if self.nest is not None:
            return super().evaluate(s)
        return self._through_shared(lambda: TileAccess.evaluate(self, s), s.span)

    def bind(self, s: Any) -> Any:
        if self.nest is not None:
            return super().bind(s)
        return self._through_shared(lambda: TileAccess.bind(self, s), s.span)

    def if_(self, s: Any) -> Any:
        if self.nest is not None:
            return super().if_(s)
        if not self._reads_tile(s.condition):
            return self._single.gathered(super().if_(s))
        return self._through_shared(lambda: TileAccess.if_(self, s), s.span)

    def attr(self, s: Any) -> Any:
        new = super().attr(s)
        if s.attr_key != WARP_SPECIALIZED:
            return new
        return _only_group(self, s, new.body)

    def _reads_tile(self, e: Any) -> bool:
        return any(self.homes.find(x.source) is not None for x in collect(e, tirx.TensorLoad))

    # --- nests ---

    def _nest(self, s: Any) -> Any:
        """A nest is shared by the threads that get to it."""
        outer, part = self.threads, neighbours(self.running())
        if part is not None:
            self.threads = replace(outer, first=outer.first + part[0], count=part[1])
        try:
            return self._shared_out(s)
        finally:
            self.threads = outer

    def _shared_out(self, s: Any) -> Any:
        extents = nest_extents(s)
        loops = nest_loops(s)
        if extents is None:
            return self._of_unknown_size(loops)
        if 0 in extents:
            return build.nothing(s.span)
        layout = attrs.unheld(s.annotations.get(attrs.LOOP_LAYOUT))
        spread = self._spread(layout, extents, loops)
        opened = self._open(loops, spread, bool(s.annotations.get(attrs.EVERY_COPY, False)))
        body = loops[-1].body
        acts, opened.acts = opened.acts, None
        whole = acts is not None and not self._keeps(body)
        if not whole:
            opened.acts = acts
        self.nest = opened
        try:
            inner = self.any(body)
        finally:
            self.nest = None
        return self._closed(loops, opened, inner, acts if whole else None, s.span)

    def _spread(self, layout: Any, extents: tuple[int, ...], loops: list[Any]) -> Spread:
        body = loops[-1].body
        bits = _memory_bits(body)
        limit = 1 if bits is None else max(1, VECTOR_BITS // bits)
        threads = self.threads.count
        candidates = [layout] if isinstance(layout, Fragment) and layout.shape == extents else []
        if not candidates:
            candidates += self._where_tiles_lie(body, [x.loop_var for x in loops], extents)
        for candidate in candidates:
            found = Spread.of(candidate, threads, limit)
            if found is not None:
                return found
        found = Spread.of(ordinary(extents, threads, bits or 32), threads, limit)
        if found is None:
            found = Spread.of(ordinary(extents, threads, VECTOR_BITS), threads, 1)
        assert found is not None
        return found

    def _where_tiles_lie(
        self, body: Any, variables: list[Any], extents: tuple[int, ...]
    ) -> list[Fragment]:
        """Layouts for a loop that run it where a tile it touches is held; written ones first."""
        stores = [(x.buffer, x.indices) for x in collect(body, tirx.BufferStore)]
        loads = [(x.source, x.indices) for x in collect(body, tirx.TensorLoad)]
        rank = len(extents)
        values = {
            v: np.arange(n).reshape([-1 if d == k else 1 for d in range(rank)])
            for k, (v, n) in enumerate(zip(variables, extents, strict=True))
        }
        found = []
        for buffer, indices in (*stores, *loads):
            layout = self.homes.fragment(buffer)
            if layout is None or buffer in self.homes.views:
                continue
            rows = []
            try:
                for index in indices:
                    row = evaluate(index, values, self.bindings)
                    rows.append(np.broadcast_to(np.asarray(row, dtype=np.int64), extents))
            except Opaque:
                continue
            table = np.stack(rows)
            if (table < 0).any():
                continue
            facts = index_facts(Layout.from_table(table), extents, layout.shape)
            found.append(through(layout, facts, extents))
        return found

    def _open(self, loops: list[Any], spread: Spread, every_copy: bool) -> Nest:
        span = loops[0].span
        # Not np.unravel_index, which goes wrong on large arrays whose last axis is 1 (NumPy 2.4).
        places = unflatten(np.maximum(spread.elements, 0), spread.shape)
        turn, lane = tirx.Var("r", "int32", span), tirx.Var("v", "int32", span)
        zero = build.const(0, "int32", span)
        round_ = turn if spread.rounds > 1 else zero
        lane_ = lane if spread.lanes > 1 else zero
        values, known, replaced = {}, {}, {}
        for dim, loop in enumerate(loops):
            low = build.int_value(loop.min) or 0
            values[loop.loop_var] = places[dim] + low
            known[loop.loop_var] = spread.coordinates[dim] + low
            name = tirx.Var(str(loop.loop_var.name), build.dtype_of(loop.loop_var), loop.span)
            moves = dim == spread.dim and spread.lanes > 1
            offset = build.cast(lane_, build.dtype_of(name), span)
            replaced[loop.loop_var] = tirx.Add(name, offset, span) if moves else name
        acts = None
        if spread.first != ALWAYS and not every_copy:
            acts = any_holds(spread.first, [self.threads.number(span), round_, lane_], span)
        body = loops[-1].body
        jumps = bool(collect(body, tirx.Break) or collect(body, tirx.Continue))
        return Nest(
            spread, values, known, replaced, round_, lane_, acts, len(self.conditions),
            frozenset(loop.loop_var for loop in collect(body, tirx.For)), jumps,
        )  # fmt: skip

    def _closed(self, loops: list[Any], opened: Nest, body: Any, acts: Any, span: TirSpan) -> Any:
        spread = opened.spread
        zero = build.const(0, "int32", span)
        at = [self.threads.number(span), opened.round, zero]
        if spread.lanes > 1:
            body = build.loop(
                opened.lane, build.const(spread.lanes, "int32", span), body, kind="VECTORIZED",
                annotations={attrs.ROUNDS: True}, span=span,
            )  # fmt: skip
        guard = all_hold(spread.inside, at, span)
        binds = []
        for loop, coordinate in zip(loops, spread.coordinates, strict=True):
            name = opened.replaced[loop.loop_var]
            name = name.a if isinstance(name, tirx.Add) else name
            if not uses(body, [name]):
                continue
            value = lower(_first_lane(coordinate, spread), at, loop.span)
            value = build.cast(value, build.dtype_of(name), loop.span)
            if not build.is_int(loop.min, 0):
                value = tirx.Add(value, loop.min, loop.span)
            binds.append(tirx.Bind(name, value, loop.span))
        if guard is not None:
            body = tirx.IfThenElse(guard, build.seq([*binds, body], span), None, span)
        else:
            body = build.seq([*binds, body], span)
        if spread.rounds > 1:
            kind = "UNROLLED" if self._unrolls(body, opened) else "SERIAL"
            extent = build.const(spread.rounds, "int32", span)
            body = build.loop(
                opened.round, extent, body, kind=kind, annotations={attrs.ROUNDS: True}, span=span
            )
        return body if acts is None else tirx.IfThenElse(acts, body, None, span)

    def _unrolls(self, body: Any, opened: Nest) -> bool:
        if opened.spread.rounds <= UNROLLED_ROUNDS:
            return True
        touched = [(x.buffer, x.indices) for x in collect(body, tirx.BufferStore)]
        touched += [(x.source, x.indices) for x in collect(body, tirx.TensorLoad)]
        return any(
            str(buffer.scope()) == "local" and uses(list(indices), [opened.round])
            for buffer, indices in touched
        )

    def _keeps(self, body: Any) -> bool:
        """Whether threads that run the same iteration each keep a result of their own."""
        own = {s.buffer for s in collect(body, tirx.AllocBuffer)}
        for store in collect(body, tirx.BufferStore):
            buffer = store.buffer
            if buffer in own or str(buffer.scope()) == REDUCER:
                continue
            if self.homes.views.get(buffer, buffer) in self.staged:
                continue
            if str(buffer.scope()) in (FRAGMENT, *PRIVATE, "local.var"):
                return True
        return False

    def _of_unknown_size(self, loops: list[Any]) -> Any:
        """A nest whose size is known at run time only: iteration `n` by thread `n % threads`."""
        span = loops[0].span
        dtype = "int64" if any(build.dtype_of(x.extent) == "int64" for x in loops) else "int32"
        total: Any = build.const(1, dtype, span)
        for loop in loops:
            total = build.mul(total, build.cast(self.any(loop.extent), dtype, span), span)
        threads = build.const(self.threads.count, dtype, span)
        turn, number = tirx.Var("r", dtype, span), tirx.Var("n", dtype, span)
        one = build.const(1, dtype, span)
        up = tirx.Sub(tirx.Add(total, threads, span), one, span)
        rounds = tirx.FloorDiv(up, threads, span)
        own = build.cast(self.threads.number(span), dtype, span)
        position: Any = number
        binds = []
        for loop in reversed(loops):
            extent = build.cast(self.any(loop.extent), dtype, span)
            value = tirx.FloorMod(position, extent, span) if loop is not loops[0] else position
            value = build.cast(value, build.dtype_of(loop.loop_var), span)
            value = build.add(value, self.any(loop.min), span)
            binds.append(tirx.Bind(loop.loop_var, value, span))
            position = tirx.FloorDiv(position, extent, span)
        body = self.any(loops[-1].body)
        inside = tirx.IfThenElse(
            tirx.LT(number, total, span), build.seq([*reversed(binds), body], span), None, span
        )
        value = tirx.Add(tirx.Mul(turn, threads, span), own, span)
        return build.loop(
            turn, rounds, build.seq([tirx.Bind(number, value, span), inside], span),
            annotations={attrs.ROUNDS: True}, span=span,
        )  # fmt: skip

    # --- tiles that lie elsewhere ---

    def _through_shared(self, rewrite: Callable[[], Any], span: TirSpan) -> Any:
        """What `rewrite` gives, with the tiles it cannot reach copied to shared memory and back."""
        if self.nest is not None or self.staged:
            return rewrite()
        stages: dict[Any, tuple[Any, Home]] = {}
        written: set[Any] = set()
        whole: set[Any] = set()
        while True:
            self.staged = {buffer: home for buffer, (_, home) in stages.items()}
            self.written, self.filled, self.read = set(), set(), set()
            try:
                stmt = rewrite()
                written, whole = self.written, self.filled - self.read
                break
            except Elsewhere as found:
                if found.buffer in stages:
                    raise
                if self._kept_apart(found.buffer, span):
                    return build.nothing(span)
                stages[found.buffer] = self._stage(found.buffer, span)
            finally:
                self.staged = {}
        if not stages:
            return stmt
        self._ctx.count("tiles moved through shared memory", len(stages))
        parts: list[Any] = []
        for buffer, (allocate, home) in stages.items():
            parts.append(self.alloc(allocate))
            if buffer not in whole:
                parts.append(self._nest(_copy(buffer, home.buffer, self._own(buffer), span)))
        parts.append(stmt)
        for buffer, (_, home) in stages.items():
            if buffer in written:
                parts.append(self._nest(_copy(home.buffer, buffer, self._own(buffer), span)))
        return build.seq(parts, span)

    def _kept_apart(self, buffer: Any, span: TirSpan) -> bool:
        """Whether some who hold a part of a tile do not come here, and cannot share it."""
        uniform = Uniformity(self._body)
        for condition in self.conditions:
            if uniform.diverges(condition) and not self.holds_for_all(condition):
                place = from_tir(written_at(condition))
                self._ctx.report(
                    "TL413", f"`{buffer.name}` is read or written here by threads that do not hold "
                    "it, and not all that do come here", span, label="an element of other threads",
                    labels=() if place is None else (Label(place, "differs between threads"),),
                    help=f"copy `{buffer.name}` to shared memory before the condition, and use "
                    "that here",
                )  # fmt: skip
                return True
        return False

    def _stage(self, buffer: Any, span: TirSpan) -> tuple[Any, Home]:
        home = self.homes.find(buffer)
        assert home is not None
        layout = Layout.row_major(home.shape)
        allocate, stage = allocate_home(
            f"{buffer.name}_shared", home.shape, str(buffer.dtype), STAGE_SCOPE, layout, span
        )
        self.homes.homes[stage.buffer] = stage  # type: ignore[index]
        return allocate, stage

    def _own(self, buffer: Any) -> Fragment | None:
        return self.homes.fragment(buffer)


def _copy(src: Any, dst: Any, layout: Fragment | None, span: TirSpan) -> Any:
    extents = [build.int_value(d) or 1 for d in src.shape]
    variables = [tirx.Var(f"i{n}", "int32", span) for n in range(len(extents))]
    body = build.store(dst, variables, build.load(src, variables, span), span)
    return nest(variables, extents, body, span, layout)


def _inside_nest(loop: Any) -> Any:
    """A loop in the body of a nest: threads run it each for themselves."""
    said = {**dict(loop.annotations), attrs.ROUNDS: True}
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, loop.thread_binding, said,
        loop.step, loop.span,
    )  # fmt: skip


def _serial(loop: Any) -> Any:
    """A nest inside a nest: each thread runs all of it."""
    loops = nest_loops(loop)
    body = loops[-1].body
    for one in reversed(loops):
        body = build.loop(one.loop_var, one.extent, body, low=one.min, span=one.span)
    return body


def _first_lane(coordinate: Any, spread: Spread) -> Any:
    return at_first_lane(coordinate) if spread.lanes > 1 else coordinate


def _memory_bits(body: Any) -> int | None:
    """The widest element of global and shared memory that a loop body touches."""
    roots = storage_roots(body)
    touched = [x.buffer for x in collect(body, tirx.BufferStore)]
    touched += [x.source for x in collect(body, tirx.TensorLoad)]
    found = [
        find_dtype(str(buffer.dtype)).bits
        for buffer in touched
        if not str(roots.get(buffer, buffer).scope()).startswith("local")
    ]
    return max(found, default=None)


def _only_group(scope: TileAccess, s: Any, body: Any) -> Any:
    """Code of some warp groups, as a condition on the number of the thread."""
    outer = scope.threads
    group = group_of(s, outer)
    if group.count == outer.count:
        return body
    number = outer.number(s.span)
    conditions = []
    low, high = group.first - outer.first, group.first - outer.first + group.count
    if low:
        conditions.append(tirx.GE(number, build.const(low, "int32", s.span), s.span))
    if high < outer.count:
        conditions.append(tirx.LT(number, build.const(high, "int32", s.span), s.span))
    return tirx.IfThenElse(build.all_of(conditions, s.span), body, None, s.span)
