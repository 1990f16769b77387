"""Random programs of one thread, and what really happens when a block runs them.

A program is plain data; `emitted_program` makes TIRX of it, `conflicts` runs it for all threads and
finds two that meet without a barrier between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import constants_of, op_of_call
from tilelang.ir.index_values import evaluate
from tilelang.ir.visit import statements
from tilelang.passes.context import PassContext
from tilelang.passes.insert_sync import insert_sync

THREADS, SIZE = 64, 192


@dataclass(frozen=True)
class Place:
    """`(thread * a ^ flip) % 64 + (k * step + first) % 3 * 64`, k being the innermost loop."""

    a: int
    flip: int
    step: int
    first: int


@dataclass(frozen=True)
class Touch:
    """A store to, or a load from, one of two shared buffers."""

    buffer: int
    writes: bool
    place: Place


@dataclass(frozen=True)
class Repeat:
    """A loop of `count` iterations; None for a number known only at run time."""

    count: int | None
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Some:
    """What runs where `k % 2 == side` (threads = 0), or in the first `threads` threads only."""

    side: int
    threads: int
    body: tuple[Step, ...]


Step: TypeAlias = "Touch | Repeat | Some"

places = st.builds(Place, st.sampled_from([1, 1, 0, 2]), st.sampled_from([0, 0, 1, 32]),
                   st.sampled_from([0, 1, 2]), st.integers(0, 2))  # fmt: skip
touches = st.builds(Touch, st.integers(0, 1), st.booleans(), places)
_plain = st.lists(touches, min_size=1, max_size=3).map(tuple)


def programs(branches: bool = True) -> st.SearchStrategy[tuple[Step, ...]]:
    """Programs of a few statements, with branches (some divergent) or without."""
    some = st.builds(Some, st.integers(0, 1), st.sampled_from([0, 32]), _plain)
    inner = st.builds(Repeat, st.sampled_from([1, 2, 3]), _plain)
    steps = st.one_of(touches, touches, inner, *[some] * branches)
    loops = st.builds(
        Repeat, st.sampled_from([None, 2, 5]), st.lists(steps, min_size=1, max_size=4).map(tuple)
    )
    return st.lists(st.one_of(touches, loops, *[some] * branches), min_size=1, max_size=4).map(
        tuple
    )


class _Emitter:
    def __init__(self) -> None:
        self.span = tirx.Span(tirx.SourceName("k.py"), 1, 1, 1, 2)
        self.tx = tirx.Var("tx", "int32", self.span)
        self.n = tirx.Var("n", "int32", self.span)
        size = [build.const(SIZE, "int32")]
        self.shared = [
            tirx.decl_buffer(size, "float32", name=f"S{i}", scope="shared.dyn", span=self.span)
            for i in range(2)
        ]
        one = [build.const(1, "int32")]
        self.local = tirx.decl_buffer(one, "float32", name="x", scope="local", span=self.span)
        self.loops: list[Any] = []

    def const(self, value: int) -> Any:
        return build.const(value, "int32", self.span)

    def index(self, place: Place) -> Any:
        k = self.loops[-1] if self.loops else self.const(0)
        lane = tirx.Mul(self.tx, self.const(place.a), self.span)
        lane = tirx.BitwiseXor(lane, self.const(place.flip), self.span)
        lane = tirx.FloorMod(lane, self.const(64), self.span)
        version = tirx.Add(tirx.Mul(k, self.const(place.step)), self.const(place.first))
        version = tirx.Mul(tirx.FloorMod(version, self.const(3)), self.const(64))
        return tirx.Add(lane, version, self.span)

    def block(self, steps: tuple[Step, ...]) -> Any:
        return build.seq([self.step(s) for s in steps], self.span)

    def step(self, s: Step) -> Any:
        zero = [self.const(0)]
        match s:
            case Touch(buffer=b, writes=True, place=p):
                value = build.load(self.local, zero, self.span)
                return build.store(self.shared[b], [self.index(p)], value, self.span)
            case Touch(buffer=b, place=p):
                value = build.load(self.shared[b], [self.index(p)], self.span)
                return build.store(self.local, zero, value, self.span)
            case Repeat(count=count, body=body):
                var = tirx.Var(f"k{len(self.loops)}", "int32", self.span)
                self.loops.append(var)
                inner = self.block(body)
                self.loops.pop()
                extent = self.n if count is None else self.const(count)
                return build.loop(var, extent, inner, span=self.span)
            case Some(side=side, threads=threads, body=body):
                k = self.loops[-1] if self.loops else self.const(0)
                parity = tirx.FloorMod(k, self.const(2), self.span)
                test = tirx.EQ(parity, self.const(side), self.span)
                if threads:
                    test = tirx.LT(self.tx, self.const(threads), self.span)
                return tirx.IfThenElse(test, self.block(body), None, self.span)


def emitted_program(steps: tuple[Step, ...]) -> Any:
    """The program as the only launch of a function."""
    e = _Emitter()
    body = build.seq(
        [*(build.allocate(b, None, e.span) for b in (*e.shared, e.local)), e.block(steps)], e.span
    )
    domain = tirx.Range.from_min_extent(e.const(0), e.const(THREADS))
    axis = tirx.IterVar(domain, e.tx, tirx.IterVar.ThreadIndex, "threadIdx.x", e.span)
    launch = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, e.const(THREADS), body, e.span)
    return tirx.PrimFunc([e.n], launch, span=e.span).with_attr({attrs.STAGE: "device"})


def synchronised(func: Any) -> Any:
    """The function with barriers."""
    return insert_sync(func, PassContext("cuda:sm_80"))


@dataclass(frozen=True)
class Event:
    """One thing all threads in `mask` do at once."""

    kind: str
    buffer: str = ""
    index: Any = None
    mask: Any = None
    number: int = -1  # which barrier of the text


def conflicts(func: Any, n: int, without: int | None = None) -> str | None:
    """Two events that meet when `n` iterations run; `without` leaves one barrier out."""
    events = list(_Run(func, n).events())
    barriers = list(dict.fromkeys(e.number for e in events if e.number >= 0))
    skipped = None if without is None else barriers[without] if without < len(barriers) else -2
    block = 0
    warp = np.zeros(THREADS // 32, dtype=int)
    seen: list[tuple[Event, int, Any]] = []
    for event in events:
        if event.number >= 0:
            if event.number != skipped:
                if event.kind == "block" and event.mask.all():
                    block += 1
                # Threads of one warp are ordered by a barrier of either kind.
                warp = warp + event.mask.reshape(-1, 32).any(1)
            continue
        for other, when, lanes in seen:
            if other.buffer == event.buffer and "write" in (other.kind, event.kind):
                if _meet(other, event, when == block, lanes == warp):
                    return f"{other} / {event}"
        seen.append((event, block, warp.copy()))
    return None


def barrier_count(func: Any) -> int:
    """How many barriers the text of `func` has."""
    return _Run(func, 1).count(func.body)


def _meet(x: Event, y: Event, same_block: bool, same_warp: Any) -> bool:
    a, b = np.nonzero(x.mask)[0], np.nonzero(y.mask)[0]
    equal = x.index[a][:, None] == y.index[b][None, :]
    apart = a[:, None] != b[None, :]
    lanes = (a[:, None] // 32) == (b[None, :] // 32)
    unordered = np.where(lanes, same_warp[a[:, None] // 32], same_block)
    return bool((equal & apart & unordered).any())


class _Run:
    def __init__(self, func: Any, n: int) -> None:
        self.func, self.n = func, n
        self.numbers = itertools.count()
        self.names: dict[Any, int] = {}

    def events(self) -> Iterator[Event]:
        launch = self.func.body
        values = {launch.node.var: np.arange(THREADS), self.func.params[0]: self.n}
        yield from self.statement(launch.body, values, np.ones(THREADS, dtype=bool), ())

    def count(self, body: Any) -> int:
        from tilelang.ir.visit import collect

        return sum(op_of_call(c) is not None for c in collect(body, tirx.Call))

    def statement(self, s: Any, values: Any, mask: Any, at: tuple[int, ...]) -> Iterator[Event]:
        if isinstance(s, tirx.SeqStmt):
            for i, x in enumerate(statements(s)):
                yield from self.statement(x, values, mask, (*at, i))
        elif isinstance(s, tirx.For):
            for k in range(int(evaluate(s.extent, values, {}))):
                yield from self.statement(s.body, {**values, s.loop_var: k}, mask, (*at, 0))
        elif isinstance(s, tirx.IfThenElse):
            taken = np.broadcast_to(evaluate(s.condition, values, {}), mask.shape)
            yield from self.statement(s.then_case, values, mask & taken, (*at, 0))
        elif isinstance(s, tirx.BufferStore):
            shared = str(s.buffer.scope()) == "shared.dyn"
            buffer, index = (s.buffer, s.indices[0]) if shared else (None, None)
            if not shared and isinstance(s.value, tirx.TensorLoad):
                if str(s.value.source.scope()) == "shared.dyn":
                    buffer, index = s.value.source, s.value.indices[0]
            if buffer is not None and mask.any():
                place = np.broadcast_to(evaluate(index, values, {}), mask.shape)
                yield Event("write" if shared else "read", str(buffer.name), place, mask)
        elif isinstance(s, tirx.Evaluate) and op_of_call(s.value) is not None:
            name = op_of_call(s.value).name  # type: ignore[union-attr]
            assert not constants_of(s.value)
            kind = "warp" if name == "sync_warp" else "block"
            if kind == "block" and not s.value.args:
                assert mask.all() or not mask.any(), "a barrier in divergent code"
            number = self.names.setdefault(at, next(self.numbers))  # type: ignore[arg-type]
            if mask.any():
                yield Event(kind, mask=mask, number=number)
