"""Random code of two groups that signal to each other: in each, threads wait where they meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call, op_of_call, region
from tilelang.ir.index_values import evaluate
from tilelang.ir.visit import statements
from tilelang.passes.context import PassContext
from tilelang.passes.insert_sync import insert_sync

THREADS, GROUP, SIZE = 128, 64, 256


@dataclass(frozen=True)
class Touch:
    """A store to, or a load from, place `(number * a ^ flip) % 64 + (k * step) % 3 * 64`."""

    writes: bool
    a: int
    flip: int
    step: int


@dataclass(frozen=True)
class Part:
    """What one group does, then it signals."""

    group: int
    body: tuple[Touch, ...]


@dataclass(frozen=True)
class Repeat:
    """Parts in a loop; None for a number known only at run time."""

    count: int | None
    parts: tuple[Part, ...]


touches = st.builds(Touch, st.booleans(), st.sampled_from([1, 1, 0, 2]),
                    st.sampled_from([0, 1, 32]), st.sampled_from([0, 1, 2]))  # fmt: skip
parts = st.builds(Part, st.integers(0, 1), st.lists(touches, min_size=1, max_size=3).map(tuple))
repeats = st.builds(
    Repeat, st.sampled_from([None, 1, 2, 5]), st.lists(parts, min_size=1, max_size=4).map(tuple)
)
programs = st.lists(st.one_of(parts, repeats), min_size=1, max_size=4).map(tuple)


class _Emitter:
    def __init__(self) -> None:
        self.span = tirx.Span(tirx.SourceName("k.py"), 1, 1, 1, 2)
        self.tx = tirx.Var("tx", "int32", self.span)
        self.n = tirx.Var("n", "int32", self.span)
        self.loops: list[Any] = []
        # One tile for each group: what they do to each other is the author's affair.
        self.tiles = [self.buffer(f"S{g}", SIZE, "float32", "shared.dyn") for g in range(2)]
        self.local = self.buffer("x", 1, "float32", "local")
        self.barrier = self.buffer("full", 1, "uint64", "shared.barrier")

    def buffer(self, name: str, size: int, dtype: str, scope: str) -> Any:
        return tirx.decl_buffer(
            [build.const(size, "int32")], dtype, name=name, scope=scope, span=self.span
        )

    def const(self, value: int) -> Any:
        return build.const(value, "int32", self.span)

    def step(self, s: Part | Repeat) -> Any:
        match s:
            case Part(group=group, body=body):
                inner = [self.touch(t, self.tiles[group]) for t in body]
                arrive = call("mbarrier_arrive", [region(self.barrier, 0, 1)], span=self.span)
                inner.append(build.evaluate(arrive, self.span))
                kind = tirx.LT if group == 0 else tirx.GE
                test = kind(self.tx, self.const(GROUP), self.span)
                return tirx.IfThenElse(test, build.seq(inner, self.span), None, self.span)
            case Repeat(count=count, parts=inside):
                var = tirx.Var(f"k{len(self.loops)}", "int32", self.span)
                self.loops.append(var)
                body = build.seq([self.step(p) for p in inside], self.span)
                self.loops.pop()
                extent = self.n if count is None else self.const(count)
                return build.loop(var, extent, body, span=self.span)

    def touch(self, t: Touch, tile: Any) -> Any:
        k = self.loops[-1] if self.loops else self.const(0)
        number = tirx.FloorMod(self.tx, self.const(GROUP), self.span)
        lane = tirx.BitwiseXor(
            tirx.Mul(number, self.const(t.a), self.span), self.const(t.flip), self.span
        )
        lane = tirx.FloorMod(lane, self.const(GROUP), self.span)
        version = tirx.FloorMod(tirx.Mul(k, self.const(t.step)), self.const(3))
        place = tirx.Add(lane, tirx.Mul(version, self.const(GROUP)), self.span)
        zero = [self.const(0)]
        if t.writes:
            return build.store(tile, [place], build.load(self.local, zero, self.span), self.span)
        return build.store(self.local, zero, build.load(tile, [place], self.span), self.span)


def synchronised(steps: tuple[Part | Repeat, ...]) -> Any:
    e = _Emitter()
    allocated = [build.allocate(b, None, e.span) for b in (*e.tiles, e.local, e.barrier)]
    body = build.seq([*allocated, *(e.step(s) for s in steps)], e.span)
    domain = tirx.Range.from_min_extent(e.const(0), e.const(THREADS))
    axis = tirx.IterVar(domain, e.tx, tirx.IterVar.ThreadIndex, "threadIdx.x", e.span)
    launch = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, e.const(THREADS), body, e.span)
    func = tirx.PrimFunc([e.n], launch, span=e.span).with_attr({attrs.STAGE: "device"})
    context = PassContext("cuda:sm_90a")
    found = insert_sync(func, context)
    assert not context.remarks
    return found


Event = tuple[str, Any, Any]  # read, write, group or warp; places; threads


def events(s: Any, values: Any, mask: Any) -> Iterator[Event]:
    """What happens, one statement of all threads after the other."""
    if isinstance(s, tirx.SeqStmt):
        for x in statements(s):
            yield from events(x, values, mask)
    elif isinstance(s, tirx.For):
        for k in range(int(evaluate(s.extent, values, {}))):
            yield from events(s.body, {**values, s.loop_var: k}, mask)
    elif isinstance(s, tirx.IfThenElse):
        taken = np.broadcast_to(evaluate(s.condition, values, {}), mask.shape)
        yield from events(s.then_case, values, mask & taken)
    elif isinstance(s, tirx.BufferStore):
        writes = str(s.buffer.scope()) == "shared.dyn"
        index = s.indices[0] if writes else s.value.indices[0]
        place = np.broadcast_to(evaluate(index, values, {}), mask.shape)
        yield "write" if writes else "read", place, mask
    elif isinstance(s, tirx.Evaluate):
        op = op_of_call(s.value)
        assert op is not None
        if op.name == "sync_warp":
            yield "warp", None, mask
        elif op.name == "sync_threads":
            count = build.int_value(s.value.args[1])
            assert count == mask.sum() == GROUP, "a group waits for itself, and nobody else"
            yield "group", None, mask


def race(func: Any, n: int) -> str | None:
    """Two accesses of one group that meet with no barrier between them."""
    launch = func.body
    values = {launch.node.var: np.arange(THREADS), func.params[0]: n}
    seen: list[tuple[str, Any, Any, int, Any]] = []
    groups, warps = np.zeros(2, dtype=int), np.zeros(THREADS // 32, dtype=int)
    for kind, place, mask in events(launch.body, values, np.ones(THREADS, dtype=bool)):
        group = int(mask.argmax()) // GROUP
        if kind in ("group", "warp"):
            groups[group] += kind == "group"
            warps = warps + mask.reshape(-1, 32).any(1)
            continue
        mine = np.nonzero(mask)[0]
        for other, there, when, at, lanes in seen:
            if at != group or "write" not in (other, kind):
                continue
            equal = there[:, None] == place[mine][None, :]
            apart = mine[:, None] != mine[None, :]
            same = mine[:, None] // 32 == mine[None, :] // 32
            unordered = np.where(same, (lanes == warps)[mine[:, None] // 32], when == groups[group])
            if (equal & apart & unordered).any():
                return f"{other} and {kind} of group {group}"
        seen.append((kind, place[mine], int(groups[group]), group, warps.copy()))
    return None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(programs)
def test_threads_of_a_group_are_kept_apart(steps: Any) -> None:
    func = synchronised(steps)
    for n in (0, 1, 2, 7):
        assert race(func, n) is None, func


def test_the_check_finds_what_is_missing() -> None:
    steps = (Part(0, (Touch(True, 1, 0, 0), Touch(False, 1, 32, 0))),)
    func = synchronised(steps)
    assert race(func, 1) is None
    bare = _without_barriers(func)
    assert race(bare, 1) == "write and read of group 0"


def _without_barriers(func: Any) -> Any:
    from tilelang.ir.visit import Rewriter, with_body

    class Drop(Rewriter):
        def evaluate(self, s: Any) -> Any:
            op = op_of_call(s.value)
            name = "" if op is None else op.name
            return build.nothing(s.span) if name.startswith("sync_") else s

    return with_body(func, Drop().any(func.body))
