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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tilelang.choices import Choices
from tilelang.dtypes import SCALARS
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.machine import machine_of
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.roles.gain import why_not
from tilelang.roles.plan import (
    WARP,
    WARP_GROUP,
    Load,
    Pipeline,
    Plan,
    Whole,
    is_load,
    is_pipeline,
    plan,
)
from tilelang.roles.tiles import Renamed
from tilelang.target import Target
from tilelang_diagnostics.model import Diagnostic, Span

_OFF: Final = (
    PassConfigKey.TL_DISABLE_WARP_SPECIALIZED, PassConfigKey.TL_DISABLE_TMA_LOWER,
    PassConfigKey.TL_DISABLE_WGMMA,
)  # fmt: skip

_ANOTHER: Final = "another copy of the kernel cannot be made by it"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """`function` with those launches split that can be and should be, None if there is none.

    `notes` are the loops that a warp loads for; `refused` the copies that none makes, and why.
    """

    function: st.Function | None = None
    notes: tuple[tuple[str, Span | None, str], ...] = ()
    refused: tuple[tuple[str, Span | None], ...] = ()

    def note(self, choices: Choices) -> None:
        """Write down what was chosen."""
        for text, span, why in self.notes:
            choices.chose("pipeline", text, span, why)

    def pass_over(self, choices: Choices) -> None:
        """Write down what stood against it."""
        for why, span in self.refused:
            choices.passed_over("copy", "TMA", why, span)

    def whole(self, function: st.Function, wrong: Diagnostic) -> Split:
        """What is left of it where lowering found something against it, in one of its copies or
        elsewhere."""
        copies = _copies(function.body, wrong.message)
        if any(span == wrong.span for _, span in copies):
            copies = tuple((why if span == wrong.span else _ANOTHER, span) for why, span in copies)
        return Split(None, (), (*self.refused, *copies))


def split(function: st.Function, target: Target, options: CompileOptions) -> Split:
    """Give every launch that pipelines a warp that loads, where the target has what it takes."""
    if not target.capabilities.has_tma or not machine_of(target).has_wgmma:
        return Split()
    turned_off = next((key for key in _OFF if options[key]), None)
    if turned_off is not None:
        return Split(refused=_copies(function.body, f"`{turned_off.value}` is set"))
    plans: dict[st.Launch, Plan] = {}
    refused: list[tuple[str, Span | None]] = []
    for stmt in function.body:
        if isinstance(stmt, st.Launch):
            try:
                found = plan(function, stmt)
            except Whole as reason:
                refused += _copies(stmt.body, str(reason))
                continue
            if found is not None:
                plans[stmt] = found
    while plans:
        parted = _with(function, plans)
        against = _against(function, parted, plans, target)
        if not any(against.values()):
            notes = [_note(p) for plan in plans.values() for p in plan.pipelines]
            return Split(parted, tuple(notes), tuple(refused))
        for launch, why in against.items():
            if why:
                refused += _copies(launch.body, why)
                del plans[launch]
    return Split(refused=tuple(refused))


def _with(function: st.Function, plans: dict[st.Launch, Plan]) -> st.Function:
    body = tuple(
        _Split(plans[s]).launch() if isinstance(s, st.Launch) and s in plans else s
        for s in function.body
    )
    return replace(function, body=body)


def _against(
    function: st.Function, parted: st.Function, plans: dict[st.Launch, Plan], target: Target
) -> dict[st.Launch, str]:
    """Why each launch that was split should not be."""
    launches = [s for s in function.body if isinstance(s, st.Launch)]
    found = zip(launches, infer_layouts(parted, target).launches, strict=True)
    return {
        launch: why_not(layouts, plans[launch].threads, target)
        for launch, layouts in found
        if launch in plans
    }


def _copies(block: st.Block, why: str) -> tuple[tuple[str, Span | None], ...]:
    """The copies into shared memory of the pipelines in a block, with a reason."""
    return tuple(
        (why, copy.span)
        for loop in st.walk_statements(block)
        if is_pipeline(loop)
        for copy in st.walk_statements(loop.body)
        if is_load(copy)
    )


def _note(pipeline: Pipeline) -> tuple[str, Span | None, str]:
    tiles = ", ".join(
        f"`{tile.name}` x {pipeline.stages}" for load in pipeline.loads for tile in load.tiles
    )
    said = f"a warp of its own loads what the loop over `{pipeline.var.var.name}` computes with"
    return said, pipeline.loop.span, f"versions: {tiles}"


@dataclass(frozen=True, slots=True, eq=False)
class _Barriers:
    """Of the versions of a load: `full` once they are there, `empty` once they are read."""

    full: Buffer
    empty: Buffer


class _Split:
    """One launch."""

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

    def launch(self) -> st.Launch:
        """The launch with a warp more, and a part for each role."""
        plan, launch = self.plan, self.plan.launch
        common: list[st.Stmt] = []
        rest: list[st.Stmt] = []
        for stmt in launch.body:
            (common if self._is_common(stmt) else rest).append(stmt)
        made = [self._allocation(s) for s in common]
        for found in self.barriers.values():
            made += [st.Allocate(span=b.span, buffer=b) for b in (found.full, found.empty)]
        groups = plan.threads // WARP_GROUP
        loads = tuple(s for p in plan.pipelines for s in self._loads(p))
        computes = tuple(s for stmt in rest for s in self._computes(stmt))
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

    def _loads(self, pipeline: Pipeline) -> Iterator[st.Stmt]:
        loop, old = pipeline.loop, pipeline.var
        var = ex.Var(old.var.name, old.var.dtype, old.var.span, "loop")
        known: dict[ex.Var, ex.Expr] = {old.var: var}
        turn = _Turn.of(pipeline, var)
        body: list[st.Stmt] = list(turn.names)
        starts = {id(load.copies[0]): load for load in pipeline.loads}
        ends = {id(load.copies[-1]): load for load in pipeline.loads}
        barriers: _Barriers | None = None
        for stmt in loop.body:
            if isinstance(stmt, st.Let) and self.plan.constants.holds(stmt.value):
                renamed = Renamed(known, {})
                fresh = replace(stmt.var, definition=renamed.expr(stmt.var.definition))
                body.append(replace(stmt, var=fresh, value=renamed.expr(stmt.value)))
                known[stmt.var] = fresh
            if not is_load(stmt):
                continue
            if id(stmt) in starts:
                barriers = self.barriers[id(starts[id(stmt)])]
                body.append(_wait(barriers.empty, turn.slot, turn.other_phase, stmt))
            assert barriers is not None
            body.append(self._tma(stmt, barriers, turn, known))
            if id(stmt) in ends:
                body.append(_arrive(barriers.full, turn.slot, stmt))
        ranges = (replace(old, var=var),)
        yield st.For(
            span=loop.span, calls=loop.calls, kind="serial", loop_vars=ranges, body=tuple(body)
        )

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

    def _computes(self, stmt: st.Stmt) -> Iterator[st.Stmt]:
        pipeline = next((p for p in self.plan.pipelines if p.loop is stmt), None)
        if pipeline is None:
            yield stmt
            return
        loop = pipeline.loop
        turn = _Turn.of(pipeline, pipeline.var.var)
        renamed = Renamed({}, self._versions(turn))
        body: list[st.Stmt] = list(turn.names)
        for inner in loop.body:
            for load in pipeline.loads:
                if inner is load.first:
                    full = self.barriers[id(load)].full
                    body.append(_wait(full, turn.slot, turn.phase, inner))
            if not is_load(inner):
                body.append(renamed.statement(inner))
            for load in pipeline.loads:
                if inner is load.last:
                    body.append(_arrive(self.barriers[id(load)].empty, turn.slot, inner))
        yield st.For(
            span=loop.span, calls=loop.calls, kind="serial", loop_vars=loop.loop_vars,
            body=tuple(body),
        )  # fmt: skip

    def _versions(self, turn: _Turn) -> dict[Buffer, tuple[Buffer, ex.Expr]]:
        return {tile: (whole, turn.slot) for tile, whole in self.tiles.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """The version that an iteration works on, and the parity of its barriers' phases."""

    slot: ex.Var
    phase: ex.Var
    names: tuple[st.Let, ...]

    @classmethod
    def of(cls, pipeline: Pipeline, var: ex.Var) -> _Turn:
        """`slot` and `phase` of the iteration `var` of a loop."""
        number: ex.Expr = var
        if not (isinstance(pipeline.var.start, ex.Const) and pipeline.var.start.value == 0):
            number = _binary("-", var, pipeline.var.start)
        stages = ex.Const(pipeline.stages, ex.INT32)
        round_ = _binary("//", number, stages)
        values = {
            "slot": _binary("%", number, stages),
            "phase": _binary("&", round_, ex.Const(1, ex.INT32)),
        }
        span, calls = pipeline.loop.span, pipeline.loop.calls
        lets = [
            st.Let(span=span, calls=calls, var=ex.Var(n, ex.INT32, span, "let", v), value=v)
            for n, v in values.items()
        ]
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
