"""Which copies of a launch can a warp of their own make, and what else must hold for that?

The warp runs the pipelined loops and nothing but their copies, ahead of the rest of the block. So
whatever it needs, bounds of loops and places of tiles, has to follow from what no thread computes
along the way; and the rest of the block must not count on all of its threads coming to one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeGuard

from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import Access, accesses, storage
from tilelang.program.buffer import Buffer, Region
from tilelang_diagnostics.model import Span

WARP: Final = 32
WARP_GROUP: Final = 128
MOST_THREADS: Final = 1024
# Operations whose effect is that of the thread that comes to them, whoever else does.
_OF_ONE_THREAD: Final = ("atomic_",)
# Values that all threads of the block compute together, or that come from elsewhere.
_OF_THE_BLOCK: Final = (
    "syncthreads",
    "call_",
    "access_ptr",
    "tvm_",
    "address_of",
    "cluster",
    "clc",
)
_SCHEDULE: Final = ("order", "stage", "sync", "group")


class Whole(Exception):
    """Why a launch is not split, and the statement because of which it is not."""

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.span = span


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """Neighbouring copies of a loop, which one barrier counts; of the statements of the loop,
    `first` is the first that reads their tiles, and `last` the last."""

    copies: tuple[st.TileOp, ...]
    first: st.Stmt
    last: st.Stmt

    @property
    def tiles(self) -> tuple[Buffer, ...]:
        return tuple(_target(copy).buffer for copy in self.copies)


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """One loop whose copies run ahead, with `stages` versions of each tile."""

    loop: st.For
    stages: int
    loads: tuple[Load, ...]

    @property
    def var(self) -> st.LoopVar:
        return self.loop.loop_vars[0]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to do with one launch."""

    launch: st.Launch
    threads: int
    pipelines: tuple[Pipeline, ...]
    constants: Constants = field(repr=False)

    @cached_property
    def versions(self) -> dict[Buffer, int]:
        """How often each tile exists."""
        found: dict[Buffer, int] = {}
        for pipeline in self.pipelines:
            for load in pipeline.loads:
                found.update(dict.fromkeys(load.tiles, pipeline.stages))
        return found


class Constants:
    """Expressions whose value every thread knows without having computed anything."""

    def __init__(self, launch: st.Launch, written: frozenset[Buffer]) -> None:
        self._threads = {var for var, _ in launch.threads}
        self._written = written
        self._named = set[ex.Var]()

    def name(self, let: st.Let) -> bool:
        """Whether a name has such a value; it then counts as one where it is used."""
        if not self.holds(let.value):
            return False
        self._named.add(let.var)
        return True

    def holds(self, expr: ex.Expr) -> bool:
        """Whether it is one."""
        for node in ex.walk(expr):
            match node:
                case ex.Var(kind="let") if node not in self._named:
                    return False
                case ex.Var() if node in self._threads:
                    return False
                case ex.Load(buffer=buffer):
                    if not buffer.is_global or storage(buffer) in self._written:
                        return False
                case ex.Intrinsic():  # such as the number of a warp
                    return False
        return True


def plan(function: st.Function, launch: st.Launch) -> Plan | None:
    """How to split a launch; None where there is nothing to load ahead. Raises `Whole`."""
    loops = [s for s in st.walk_statements(launch.body) if is_pipeline(s)]
    if not loops:
        return None
    threads = _threads(launch)
    for stmt in st.walk_statements(launch.body):
        _check(stmt)
    written = frozenset(
        storage(a.buffer) for s in st.walk_statements(function.body) for a in accesses(s)
        if a.kind != "read" or not a.certain
    )  # fmt: skip
    constants = Constants(launch, written)
    pipelines = tuple(_pipelines(launch.body, constants, written))
    found = Plan(launch, threads, pipelines, constants)
    _check_tiles(found)
    return found


def _pipelines(
    block: st.Block, constants: Constants, written: frozenset[Buffer]
) -> Iterator[Pipeline]:
    """Those of a block, in loops and branches that the loading warp can run as well."""
    for stmt in block:
        if isinstance(stmt, st.Let):
            constants.name(stmt)
        if is_pipeline(stmt):
            yield _pipeline(stmt, constants, written)
        elif holds_pipelines(stmt):
            _check_around(stmt, constants)
            for inner in st.bodies(stmt):
                yield from _pipelines(inner, constants, written)


def holds_pipelines(stmt: st.Stmt) -> bool:
    """Whether there are pipelines inside a statement."""
    return any(is_pipeline(s) for block in st.bodies(stmt) for s in st.walk_statements(block))


def _check_around(stmt: st.Stmt, constants: Constants) -> None:
    """That whoever loads knows how often, or whether, the pipelines in a statement run."""
    match stmt:
        case st.For(kind="serial"):
            heads = [e for v in stmt.loop_vars for e in (v.start, v.extent)]
        case st.If(condition=condition):
            heads = [condition]
        case _:
            raise Whole("the pipeline stands inside another, or in a `while`", stmt.span)
    if not all(constants.holds(e) for e in heads):
        raise Whole("whether the pipeline runs is computed by its threads", stmt.span)


def is_pipeline(stmt: st.Stmt) -> TypeGuard[st.For]:
    """Whether it is a `T.Pipelined`, of however many stages."""
    return isinstance(stmt, st.For) and stmt.kind == "pipelined"


def _threads(launch: st.Launch) -> int:
    sizes = [arith.constant_value(extent) for _, extent in launch.threads]
    first, *others = sizes
    if first is None or any(n != 1 for n in others) or first % WARP_GROUP:
        raise Whole("its threads are no whole warp groups along x", launch.span)
    if first + WARP > MOST_THREADS:
        raise Whole("a block has no room for another warp", launch.span)
    if launch.attr("cluster_dims") is not None:
        raise Whole("its blocks come in clusters", launch.span)
    return first


def _check(stmt: st.Stmt) -> None:
    """That a statement may be left to some of the threads of the block."""
    match stmt:
        case st.Evaluate(value=ex.Intrinsic(name=name)) if name.startswith(_OF_ONE_THREAD):
            pass
        case st.Evaluate(value=ex.Intrinsic(name=name)):
            raise Whole(f"`T.{name}` may count on all threads", stmt.span)
        case st.Assert():
            raise Whole("an assertion may stop a thread that others wait for", stmt.span)
        case st.Evaluate() | st.Jump() | st.Scoped():
            raise Whole("the author says who comes where", stmt.span)
        case st.TileOp(name="tma_copy" | "async_copy" | "copy_cluster" | "tcgen05_gemm"):
            raise Whole("the author says what runs in the background", stmt.span)
        case st.TileOp(name="gemm") if stmt.attr("instruction") is not None:
            raise Whole("the author says what runs in the background", stmt.span)
    for expr in st.expressions(stmt):
        for node in ex.walk(expr):
            if isinstance(node, ex.Intrinsic) and node.name.startswith(_OF_THE_BLOCK):
                raise Whole(f"`{node.name}` may count on all threads", stmt.span)


def _pipeline(loop: st.For, constants: Constants, written: frozenset[Buffer]) -> Pipeline:
    stages = loop.attr("num_stages")
    if not isinstance(stages, int) or stages < 2:
        raise Whole("the loop does not ask for two stages or more", loop.span)
    if any(loop.attr(key) is not None for key in _SCHEDULE):
        raise Whole("the author says what runs when", loop.span)
    (var,) = loop.loop_vars
    if var.step is not None or var.var.dtype != ex.INT32:
        raise Whole("its iterations are not counted one by one, in 32 bits", loop.span)
    if not constants.holds(var.start) or not constants.holds(var.extent):
        raise Whole("how often it runs is computed by its threads", loop.span)
    for stmt in loop.body:
        if isinstance(stmt, st.Let):
            constants.name(stmt)
    runs = list(_runs(loop.body))
    if not runs:
        raise Whole("the loop copies nothing into shared memory", loop.span)
    for run in runs:
        for copy in run:
            _check_copy(copy, constants, written)
    loads = tuple(Load(run, *_uses(run, loop)) for run in runs)
    return Pipeline(loop, stages, loads)


def _runs(body: st.Block) -> Iterator[tuple[st.TileOp, ...]]:
    """Copies from tensors to shared memory that follow each other."""
    run: list[st.TileOp] = []
    for stmt in body:
        if is_load(stmt):
            run.append(stmt)
        elif is_pipeline(stmt) or holds_pipelines(stmt):
            raise Whole("the pipeline holds another", stmt.span)
        elif run and not isinstance(stmt, st.Let):
            yield tuple(run)
            run = []
        for block in st.bodies(stmt):
            for inner in st.walk_statements(block):
                if is_load(inner):
                    raise Whole("a copy stands inside a branch or an inner loop", inner.span)
    if run:
        yield tuple(run)


def is_load(stmt: st.Stmt) -> TypeGuard[st.TileOp]:
    """Whether it copies from a tensor to shared memory."""
    if not isinstance(stmt, st.TileOp) or stmt.name != "copy":
        return False
    source, target = stmt.args[0], stmt.args[1]
    assert isinstance(source, Region) and isinstance(target, Region)
    return source.buffer.is_global and target.buffer.is_shared


def _target(copy: st.TileOp) -> Region:
    target = copy.args[1]
    assert isinstance(target, Region)
    return target


def _check_copy(copy: st.TileOp, constants: Constants, written: frozenset[Buffer]) -> None:
    source, target = copy.args[0], copy.args[1]
    assert isinstance(source, Region) and isinstance(target, Region)
    name, tensor = target.buffer.name, source.buffer
    if copy.attr("disable_tma") or copy.attr("prefer_instruction") not in (None, "tma"):
        raise Whole("the author asks for a copy without TMA", copy.span)
    if copy.attr("loop_layout") is not None or copy.attr("coalesced_width") is not None:
        raise Whole("the author says how threads share a copy", copy.span)
    if tensor.role != "param" or storage(tensor) in written:
        raise Whole(f"`{tensor.name}` is no argument that is only read", copy.span)
    if not all(isinstance(n, int) for n in (*tensor.shape[1:], *(tensor.strides or ()))):
        raise Whole(f"how far rows of `{tensor.name}` are apart is known at run time", copy.span)
    if not _is_whole(target):
        raise Whole(f"it fills a part of `{name}`", copy.span)
    places = [e for r in source.ranges for e in (r.min, r.extent)]
    if not all(constants.holds(e) for e in places):
        raise Whole(f"where in `{tensor.name}` it copies is computed by its threads", copy.span)


def _is_whole(region: Region) -> bool:
    starts = [arith.constant_value(r.min) for r in region.ranges]
    sizes = tuple(arith.constant_value(r.extent) for r in region.ranges)
    return not any(s != 0 for s in starts) and sizes == region.buffer.shape


def _uses(copies: tuple[st.TileOp, ...], loop: st.For) -> tuple[st.Stmt, st.Stmt]:
    """The first and the last statement of a loop that read the tiles of some copies."""
    tiles = {_target(c).buffer for c in copies}
    uses = [
        s for s in loop.body
        if s not in copies and any(storage(a.buffer) in tiles for a in _all_accesses(s))
    ]  # fmt: skip
    if not uses:
        raise Whole("nothing reads what the loop copies", copies[0].span)
    if loop.body.index(uses[0]) < loop.body.index(copies[-1]):
        raise Whole("a tile is read before it is filled", uses[0].span)
    return uses[0], uses[-1]


def _check_tiles(plan: Plan) -> None:
    """That tiles are filled by their copies, and read as what they are, in their loop alone."""
    tiles = plan.versions
    whole = tuple(st.walk_statements(plan.launch.body))
    made = {s.buffer for s in whole if isinstance(s, st.Allocate)}
    copies = [c for p in plan.pipelines for load in p.loads for c in load.copies]
    for tile in tiles:
        if tile not in made or sum(_target(c).buffer is tile for c in copies) != 1:
            raise Whole(f"`{tile.name}` is filled in several places", tile.span)
    for stmt in whole:
        if isinstance(stmt, st.Annotate) and isinstance(stmt.value, dict):
            for buffer in stmt.value:
                if buffer in tiles:
                    raise Whole(f"the author says how `{buffer.name}` lies", stmt.span)
        for access in accesses(stmt):
            if storage(access.buffer) in tiles:
                _check_use(access, stmt in copies)
    home = {
        id(stmt): {tile for load in pipeline.loads for tile in load.tiles}
        for pipeline in plan.pipelines for stmt in st.walk_statements(pipeline.loop.body)
    }  # fmt: skip
    for stmt in whole:
        for access in accesses(stmt):
            if access.buffer in tiles and access.buffer not in home.get(id(stmt), ()):
                raise Whole(f"`{access.buffer.name}` is read outside of its loop", stmt.span)


def _check_use(access: Access, fills: bool) -> None:
    name = access.buffer.name
    if access.buffer.source is not None:
        raise Whole(f"`{name}` shows a tile in another shape", access.span)
    if not access.certain or (access.kind != "read" and not fills):
        raise Whole(f"`{name}` is written while it is computed with", access.span)


def _all_accesses(stmt: st.Stmt) -> Iterator[Access]:
    yield from accesses(stmt)
    for block in st.bodies(stmt):
        for inner in st.walk_statements(block):
            yield from accesses(inner)
