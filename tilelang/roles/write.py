"""A launch whose pipelines are loaded by a warp of their own.

Before: with T.Kernel(…, threads=256):
            for k in T.Pipelined(n, num_stages=3):
                T.copy(A[…, k * 64], A_s)
                T.gemm(A_s, …, C_l)
            T.copy(C_l, C[…])
After:  with T.Kernel(…, threads=288):
            with T.ws(2):
                for k in range(n):
                    wait until version k % 3 of A_s is read
                    T.tma_copy(A[…, k * 64], version k % 3 of A_s, barrier=…)
            with T.ws(0, 1):
                for k in range(n):
                    wait until version k % 3 of A_s is there
                    T.gemm(version k % 3 of A_s, …, C_l)
                    tell that it is read
                T.copy(C_l, C[…])

The loading warp needs few registers, and a block with one warp more leaves the others enough; so
they are not redistributed (`setmaxnreg`), which takes a whole warp group. What comes out is a
program like one its author could have written, and is compiled as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilelang.dtypes import SCALARS
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.roles.plan import (
    WARP,
    WARP_GROUP,
    Load,
    Pipeline,
    Plan,
    holds_pipelines,
    is_load,
    is_pipeline,
)
from tilelang.roles.tiles import Renamed


@dataclass(frozen=True, slots=True, eq=False)
class _Barriers:
    """Of the versions of a load: `full` once they are there, `empty` once they are read."""

    full: Buffer
    empty: Buffer


class Writer:
    """Writes one launch anew, by its plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tiles = {
            tile: replace(
                tile, shape=(count, *tile.shape), attrs=(*tile.attrs, ("in_stages", count))
            )
            for tile, count in plan.versions.items()
        }
        self.barriers = {
            id(load): self._barriers(load, pipeline)
            for pipeline in plan.pipelines for load in pipeline.loads
        }  # fmt: skip
        # How many iterations each role has done of loops that are run again and again.
        self.counters = {
            id(p.loop): tuple(
                Buffer(f"{p.var.var.name}_{word}", (1,), SCALARS["int32"], "local.var", p.loop.span)
                for word in ("loaded", "computed")
            )
            for p in plan.pipelines if p.loop not in plan.launch.body
        }  # fmt: skip

    def _counters(self, role: int) -> Iterator[st.Stmt]:
        for counters in self.counters.values():
            span, zero = counters[role].span, ex.Const(0, ex.INT32)
            yield st.Allocate(span=span, buffer=counters[role], init=zero)

    def launch(self) -> st.Launch:
        """The launch with a warp more, and a part for each role."""
        plan, launch = self.plan, self.plan.launch
        common: list[st.Stmt] = []
        rest: list[st.Stmt] = []
        for stmt in launch.body:
            (common if self._is_common(stmt) else rest).append(stmt)
        made = [self._allocation(s) for s in common]
        there = {s.buffer for s in made if isinstance(s, st.Allocate)}
        made += [
            self._allocation(s) for s in st.walk_statements(launch.body)
            if isinstance(s, st.Allocate) and s.buffer in self.tiles
            and self.tiles[s.buffer] not in there
        ]  # fmt: skip
        for found in self.barriers.values():
            made += [st.Allocate(span=b.span, buffer=b) for b in (found.full, found.empty)]
        groups = plan.threads // WARP_GROUP
        loads = (*self._counters(0), *self._loads(launch.body, {}))
        computes = (*self._counters(1), *self._computes(tuple(rest)))
        span = launch.span
        made.append(st.Scoped(span=span, kind="ws", args=(groups,), body=loads))
        made.append(st.Scoped(span=span, kind="ws", args=tuple(range(groups)), body=computes))
        (var, extent), *others = launch.threads
        more = ex.Const(plan.threads + WARP, extent.dtype, extent.span)
        return replace(launch, threads=((var, more), *others), body=tuple(made))

    def _is_common(self, stmt: st.Stmt) -> bool:
        """Whether all threads do it, before they part."""
        match stmt:
            case st.Annotate():
                return True
            case st.Allocate(init=init):
                return init is None
            case st.Let(value=value) | st.Assume(condition=value):
                return self.plan.constants.holds(value)
        return False

    def _is_tile(self, stmt: st.Stmt) -> bool:
        """Whether it allocates what is loaded."""
        return isinstance(stmt, st.Allocate) and stmt.buffer in self.tiles

    def _allocation(self, stmt: st.Stmt) -> st.Stmt:
        if isinstance(stmt, st.Allocate) and stmt.buffer in self.tiles:
            return replace(stmt, buffer=self.tiles[stmt.buffer])
        return stmt

    def _barriers(self, load: Load, pipeline: Pipeline) -> _Barriers:
        name, span = "_".join(tile.name for tile in load.tiles), load.copies[0].span

        def made(word: str, count: int) -> Buffer:
            attrs = (("arrive_counts", (count,) * pipeline.stages), ("drained", True))
            return Buffer(
                f"{name}_{word}", (pipeline.stages,), SCALARS["uint64"], "shared.barrier", span,
                attrs=attrs,
            )  # fmt: skip

        return _Barriers(made("full", WARP), made("empty", self.plan.threads))

    # --- the warp that loads ---

    def _loads(self, block: st.Block, known: dict[ex.Var, ex.Expr]) -> Iterator[st.Stmt]:
        """What the loading warp does of a block; `known` are its own names for those of others."""
        for stmt in block:
            renamed = Renamed(known, {})
            if is_pipeline(stmt):
                yield self._loading(self._pipeline_of(stmt), known)
            elif isinstance(stmt, st.Let) and block is not self.plan.launch.body:
                if self.plan.constants.holds(stmt.value):
                    yield self._named(stmt, known)
            elif not holds_pipelines(stmt):
                continue
            elif isinstance(stmt, st.For):
                yield self._counted(stmt, known, lambda inner, body: self._loads(body, inner))
            elif isinstance(stmt, st.If):
                then, orelse = (
                    tuple(self._loads(b, dict(known))) for b in (stmt.then, stmt.orelse)
                )
                condition = renamed.expr(stmt.condition)
                yield replace(stmt, condition=condition, then=then, orelse=orelse)

    def _loading(self, pipeline: Pipeline, known: dict[ex.Var, ex.Expr]) -> st.Stmt:
        """The loop of a pipeline, copies alone."""
        starts = {id(load.copies[0]): load for load in pipeline.loads}
        ends = {id(load.copies[-1]): load for load in pipeline.loads}

        def loaded(inner: dict[ex.Var, ex.Expr], block: st.Block) -> Iterator[st.Stmt]:
            turn = self._turn(pipeline, inner, 0)
            yield from turn.names
            barriers: _Barriers | None = None
            for stmt in block:
                if isinstance(stmt, st.Let) and self.plan.constants.holds(stmt.value):
                    yield self._named(stmt, inner)
                if not is_load(stmt):
                    continue
                if id(stmt) in starts:
                    barriers = self.barriers[id(starts[id(stmt)])]
                    yield _wait(barriers.empty, turn.slot, turn.other_phase, stmt)
                assert barriers is not None
                yield self._tma(stmt, barriers, turn, inner)
                if id(stmt) in ends:
                    yield _arrive(barriers.full, turn.slot, stmt)
            yield from turn.end

        return self._counted(pipeline.loop, known, loaded)

    def _counted(
        self, loop: st.For, known: dict[ex.Var, ex.Expr],
        body: Callable[[dict[ex.Var, ex.Expr], st.Block], Iterator[st.Stmt]],
    ) -> st.For:  # fmt: skip
        """A sequential loop with a variable of its own."""
        renamed, inner = Renamed(known, {}), dict(known)
        (old,) = loop.loop_vars
        inner[old.var] = var = ex.Var(old.var.name, old.var.dtype, old.var.span, "loop")
        ranges = replace(
            old, var=var, start=renamed.expr(old.start), extent=renamed.expr(old.extent)
        )
        return st.For(
            span=loop.span, calls=loop.calls, kind="serial", loop_vars=(ranges,),
            body=tuple(body(inner, loop.body)),
        )  # fmt: skip

    def _named(self, let: st.Let, known: dict[ex.Var, ex.Expr]) -> st.Let:
        """A name of the loading warp's own, known from here on."""
        renamed = Renamed(known, {})
        known[let.var] = fresh = replace(let.var, definition=renamed.expr(let.var.definition))
        return replace(let, var=fresh, value=renamed.expr(let.value))

    def _tma(
        self, copy: st.TileOp, barriers: _Barriers, turn: _Turn, known: dict[ex.Var, ex.Expr]
    ) -> st.TileOp:
        renamed = Renamed(known, self._versions(turn))
        source, target = map(renamed.operand, copy.args)
        attrs = (
            ("cluster_mask", None), ("leader_scope_threads", None),
            ("eviction_policy", copy.attr("eviction_policy")),
        )  # fmt: skip
        args = (source, target, _point(barriers.full, turn.slot))
        return st.TileOp(span=copy.span, calls=copy.calls, name="tma_copy", args=args, attrs=attrs)

    # --- the others ---

    def _computes(self, block: st.Block) -> Iterator[st.Stmt]:
        """What all others do of a block."""
        for stmt in block:
            if self._is_tile(stmt):
                continue  # there for all
            if is_pipeline(stmt):
                yield self._computing(self._pipeline_of(stmt))
            elif isinstance(stmt, st.For) and holds_pipelines(stmt):
                yield replace(stmt, body=tuple(self._computes(stmt.body)))
            elif isinstance(stmt, st.If) and holds_pipelines(stmt):
                then, orelse = (tuple(self._computes(b)) for b in (stmt.then, stmt.orelse))
                yield replace(stmt, then=then, orelse=orelse)
            else:
                yield stmt

    def _computing(self, pipeline: Pipeline) -> st.Stmt:
        """The loop of a pipeline without its copies."""
        loop = pipeline.loop
        turn = self._turn(pipeline, {}, 1)
        renamed = Renamed({}, self._versions(turn))
        body: list[st.Stmt] = list(turn.names)
        for inner in loop.body:
            for load in pipeline.loads:
                if inner is load.first:
                    full = self.barriers[id(load)].full
                    body.append(_wait(full, turn.slot, turn.phase, inner))
            if not (is_load(inner) or self._is_tile(inner)):
                body.append(renamed.statement(inner))
            for load in pipeline.loads:
                if inner is load.last:
                    body.append(_arrive(self.barriers[id(load)].empty, turn.slot, inner))
        return st.For(
            span=loop.span, calls=loop.calls, kind="serial", loop_vars=loop.loop_vars,
            body=(*body, *turn.end),
        )  # fmt: skip

    def _pipeline_of(self, loop: st.For) -> Pipeline:
        return next(p for p in self.plan.pipelines if p.loop is loop)

    def _turn(self, pipeline: Pipeline, known: dict[ex.Var, ex.Expr], role: int) -> _Turn:
        """The version of an iteration: by its number, or counted on where the loop runs often."""
        counters = self.counters.get(id(pipeline.loop))
        if counters is not None:
            return _Turn.counted(pipeline, counters[role])
        var = known.get(pipeline.var.var, pipeline.var.var)
        start = Renamed(known, {}).expr(pipeline.var.start)
        return _Turn.numbered(pipeline, var, start)

    def _versions(self, turn: _Turn) -> dict[Buffer, tuple[Buffer, ex.Expr]]:
        return {tile: (whole, turn.slot) for tile, whole in self.tiles.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """The version that an iteration works on, and the parity of its barriers' phases."""

    slot: ex.Var
    phase: ex.Var
    names: tuple[st.Let, ...]
    end: tuple[st.Stmt, ...] = ()

    @classmethod
    def numbered(cls, pipeline: Pipeline, var: ex.Expr, start: ex.Expr) -> _Turn:
        """Of the iteration `var` of a loop that runs once."""
        from_zero = isinstance(start, ex.Const) and start.value == 0
        return cls._of(pipeline, var if from_zero else _binary("-", var, start), pure=True)

    @classmethod
    def counted(cls, pipeline: Pipeline, counter: Buffer) -> _Turn:
        """Of an iteration of a loop that runs again and again."""
        zero, one = (ex.Const(n, ex.INT32) for n in (0, 1))
        number = ex.VarRef(counter, (zero,), ex.INT32)
        loop = pipeline.loop
        more = st.Store(
            span=loop.span, calls=loop.calls, buffer=counter, indices=(zero,),
            value=_binary("+", number, one),
        )  # fmt: skip
        return replace(cls._of(pipeline, number, pure=False), end=(more,))

    @classmethod
    def _of(cls, pipeline: Pipeline, number: ex.Expr, pure: bool) -> _Turn:
        stages = ex.Const(pipeline.stages, ex.INT32)
        round_ = _binary("//", number, stages)
        values = {
            "slot": _binary("%", number, stages),
            "phase": _binary("&", round_, ex.Const(1, ex.INT32)),
        }
        span, calls = pipeline.loop.span, pipeline.loop.calls
        lets = [
            st.Let(
                span=span, calls=calls, value=v,
                var=ex.Var(n, ex.INT32, span, "let", v if pure else None),
            )
            for n, v in values.items()
        ]  # fmt: skip
        return cls(lets[0].var, lets[1].var, tuple(lets))

    @property
    def other_phase(self) -> ex.Expr:
        """What the loading warp waits for: at first every version counts as read."""
        return _binary("^", self.phase, ex.Const(1, ex.INT32))


def _binary(op: ex.BinaryOp, left: ex.Expr, right: ex.Expr) -> ex.Expr:
    return ex.Binary(op, left, right, ex.INT32)


def _point(barriers: Buffer, slot: ex.Expr) -> Region:
    return Region(barriers, (Range(slot, ex.Const(1, ex.INT32), is_point=True),), barriers.span)


def _wait(barriers: Buffer, slot: ex.Expr, phase: ex.Expr, near: st.Stmt) -> st.Stmt:
    return _effect("mbarrier_wait_parity", (_point(barriers, slot), phase), near)


def _arrive(barriers: Buffer, slot: ex.Expr, near: st.Stmt) -> st.Stmt:
    return _effect("mbarrier_arrive", (_point(barriers, slot),), near)


def _effect(name: str, args: tuple[ex.Expr | Region, ...], near: st.Stmt) -> st.Stmt:
    value = ex.Intrinsic(name, args, ex.INT32, near.span)
    return st.Evaluate(span=near.span, calls=near.calls, value=value)
