"""Which statements of a pipelined loop run ahead of the others, and how far?

Statement i of stage s handles, while the loop is at step t, iteration t - s: with D the last stage,
copies of stage 0 run D iterations ahead of what uses them in stage D. A buffer that one stage
writes and a later one reads has as many versions as there are iterations between.

Copies from global to shared memory that depend on nothing else in the loop are stage 0; where the
author gave `stage` and `order`, those are kept. Names bound to scalars are no statements: they are
computed anew in each stage that uses them, unless they read what the loop writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.analysis.tile_effects import Effects, copied_tile, effects_of, unwrapped
from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import called_op, op_of
from tilelang.ir.visit import collect, statements, uses

SHARED: Final = ("shared", "shared.dyn")
_SILENT: Final = ("annotate", "assume")


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A statement with its stage and place among the others; `asynchronous`: it may be copied by
    instructions that do not wait."""

    stmt: Any
    effects: Effects
    stage: int
    order: int
    asynchronous: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A copy that is not asynchronous, and why."""

    stmt: Any
    reason: str


@dataclass(slots=True, eq=False)
class Schedule:
    """The plan of one loop: `steps` in the order of execution, `binds` as written, `versions` of
    buffers that need several, and allocations and notes that go before the loop."""

    steps: tuple[Step, ...]
    binds: tuple[Any, ...]
    hoisted: tuple[Any, ...]
    versions: dict[Any, int] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    reason: str = ""  # nothing runs ahead

    @property
    def depth(self) -> int:
        """How many iterations the first stage is ahead of the last."""
        return max((s.stage for s in self.steps), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What is known around a loop: views, values read beyond a tensor's edge, whether the target
    copies asynchronously (or its name), and what is touched first after the loop."""

    views: Mapping[Any, Any]
    safe_values: Mapping[Any, Any]
    target: str
    can_copy: bool
    touched_next: Mapping[Any, bool]


def plan_pipeline(loop: Any, stages: int, around: Surroundings) -> Schedule:
    """The schedule of a loop that is `stages` deep, or as its annotations say."""
    parts = _Parts.of(loop, around.views)
    manual = _manual(loop, len(parts.scheduled))
    if manual is not None:
        return _as_written(parts, manual, around)
    if stages < 2:
        return _plain(parts, "one stage was asked for")
    if _may_leave(loop.body):
        return _plain(parts, "it may end early, and what was copied ahead would be left over")
    return _Automatic(loop, parts, around).plan(stages - 1)


@dataclass(slots=True, eq=False)
class _Parts:
    scheduled: list[tuple[Any, Effects]]
    binds: list[Any]
    hoisted: list[Any]

    @staticmethod
    def of(loop: Any, views: Mapping[Any, Any]) -> _Parts:
        found = _Parts([], [], [])
        body = [s for part in statements(loop.body) for s in _flat(part)]
        written: set[Any] = set()
        for s in body:
            written |= set(effects_of(s, views).writes)
        for s in body:
            if isinstance(s, (tirx.AllocBuffer, tirx.DeclBuffer)) or called_op(s) in _SILENT:
                found.hoisted.append(s)
            elif isinstance(s, tirx.Bind) and _is_replayable(s, views, written):
                found.binds.append(s)
            elif not build.is_nothing(s):
                found.scheduled.append((s, effects_of(s, views)))
        return found


def _flat(s: Any) -> list[Any]:
    return [x for part in s.seq for x in _flat(part)] if isinstance(s, tirx.SeqStmt) else [s]


def _is_replayable(bind: Any, views: Mapping[Any, Any], written: set[Any]) -> bool:
    """Whether computing a name again gives the same: it reads nothing that the loop writes."""
    if effects_of(bind, views).touches() & written:
        return False
    return not any(op_of(c) is not None for c in collect(bind.value, tirx.Call))


def _manual(loop: Any, count: int) -> tuple[list[int], list[int]] | None:
    """Stages and order as the author wrote them, if they say where every statement goes."""
    said = loop.annotations
    if attrs.LOOP_STAGE not in said or attrs.LOOP_ATTR_PREFIX + "group" in said:
        return None
    stage = [int(n) for n in said[attrs.LOOP_STAGE]]
    order = [int(n) for n in said.get(attrs.ORDER, range(len(stage)))]
    complete = len(stage) == len(order) == count and min((*stage, *order), default=-1) >= 0
    return (stage, order) if complete else None


def _plain(parts: _Parts, reason: str) -> Schedule:
    steps = tuple(Step(s, e, 0, n) for n, (s, e) in enumerate(parts.scheduled))
    return Schedule(steps, tuple(parts.binds), tuple(parts.hoisted), reason=reason)


def _as_written(
    parts: _Parts, manual: tuple[list[int], list[int]], around: Surroundings
) -> Schedule:
    steps = []
    for (stmt, effects), stage, order in zip(parts.scheduled, *manual, strict=True):
        copied = copied_tile(unwrapped(stmt))
        moves = copied is not None and around.can_copy and _is_movable(copied)
        steps.append(Step(stmt, effects, stage, order, moves))
    steps.sort(key=lambda s: s.order)
    found = Schedule(tuple(steps), tuple(parts.binds), tuple(parts.hoisted))
    found.versions = _versions(found.steps)
    # Registers have one version only; a stage that leaves a value in them cannot run ahead.
    if any(n > 1 and str(b.scope()) not in SHARED for b, n in found.versions.items()):
        return _plain(parts, "a stage leaves a value in registers, of which there is one version")
    return found


def _versions(steps: Sequence[Step]) -> dict[Any, int]:
    """How many iterations of each buffer exist at once."""
    found: dict[Any, int] = {}
    for writer in steps:
        for buffer in writer.effects.writes:
            if str(buffer.scope()) == "global":
                continue
            for reader in steps:
                ahead = reader.stage - writer.stage
                if ahead <= 0 or buffer not in reader.effects.touches():
                    continue
                # The writer comes first in each step: what it overwrites must be done with.
                count = ahead + int(writer.order < reader.order)
                found[buffer] = max(found.get(buffer, 1), count)
    return {b: n for b, n in found.items() if n > 1}


class _Automatic:
    """Copies ahead, everything else after."""

    def __init__(self, loop: Any, parts: _Parts, around: Surroundings) -> None:
        self.loop, self.parts, self.around = loop, parts, around
        self.refusals: list[Refusal] = []
        self.ahead: set[int] = set()

    def plan(self, depth: int) -> Schedule:
        scheduled = self.parts.scheduled
        candidates = [n for n, (s, e) in enumerate(scheduled) if self._is_candidate(s)]
        self.ahead = {n for n in candidates if self._may_run_ahead(n)}
        self._keep_sources_in_step()
        if not self.ahead:
            why = "none of its copies can" if candidates else "no copy brings a tensor's elements"
            return self._refused(_plain(self.parts, why))
        steps = []
        for n, (stmt, effects) in enumerate(scheduled):
            early = n in self.ahead
            place = n if early else len(scheduled) + n
            steps.append(Step(stmt, effects, 0 if early else depth, place, early))
        steps.sort(key=lambda s: s.order)
        found = Schedule(tuple(steps), tuple(self.parts.binds), tuple(self.parts.hoisted))
        found.versions = _versions(found.steps)
        return self._refused(found)

    def _refused(self, schedule: Schedule) -> Schedule:
        schedule.refusals = tuple(self.refusals)
        return schedule

    def _refuse(self, n: int, reason: str) -> bool:
        self.refusals.append(Refusal(self.parts.scheduled[n][0], reason))
        return False

    def _is_candidate(self, stmt: Any) -> bool:
        """Whether a statement brings elements of a tensor into shared memory."""
        return any(
            str(b.scope()) in SHARED and str(a.scope()) == "global"
            for a, b in _copies(stmt)
        )  # fmt: skip

    def _may_run_ahead(self, n: int) -> bool:
        stmt, effects = self.parts.scheduled[n]
        if not self.around.can_copy:
            return self._refuse(n, f"{self.around.target} has no asynchronous copies")
        if _asks_to_wait(stmt):
            return self._refuse(n, 'it asks for that: prefer_instruction="sync"')
        if not _only_copies(stmt):
            return self._refuse(n, "the statement does more than move elements")
        for source, destination in _copies(stmt):
            if str(source.dtype) != str(destination.dtype):
                return self._refuse(n, f"it converts {source.dtype} to {destination.dtype}")
            safe = self.around.safe_values.get(source)
            if safe is not None and not build.is_int(safe, 0) and float(safe.value) != 0:
                return self._refuse(
                    n, f"elements beyond `{source.name}` read as {safe}, and it would give zeros"
                )
        others = [e for m, (_, e) in enumerate(self.parts.scheduled) if m != n]
        for other in others:
            for buffer in effects.reads & set(other.writes):
                if not self._is_copied(buffer):
                    return self._refuse(
                        n, f"it needs `{buffer.name}`, which the loop computes on the way"
                    )
        return all(self._may_have_versions(n, b) for b in effects.writes)

    def _is_copied(self, buffer: Any) -> bool:
        """Whether a buffer is only ever written by copies out of tensors."""
        writers = [s for s, e in self.parts.scheduled if buffer in e.writes]
        return all(self._is_candidate(s) for s in writers)

    def _may_have_versions(self, n: int, buffer: Any) -> bool:
        stmt, _ = self.parts.scheduled[n]
        if str(buffer.scope()) == "global":
            return True
        whole = any(
            e.writes.get(buffer, False) for m, (_, e) in enumerate(self.parts.scheduled) if m == n
        )
        if not whole and not self._is_read_under_same_condition(stmt, buffer):
            return self._refuse(
                n, f"it does not write all of `{buffer.name}` in every iteration, and the rest "
                "would be that of an older one"
            )  # fmt: skip
        if any(buffer in e.reads for _, e in self.parts.scheduled[:n]):
            return self._refuse(n, f"`{buffer.name}` is read before it is copied")
        if not self.around.touched_next.get(buffer, True):
            return self._refuse(n, f"`{buffer.name}` is read after the loop")
        return True

    def _is_read_under_same_condition(self, stmt: Any, buffer: Any) -> bool:
        """Whether what reads a conditional copy runs under its condition."""
        if not isinstance(stmt, tirx.IfThenElse) or stmt.else_case is not None:
            return False
        inner = effects_of(stmt.then_case, self.around.views)
        if not inner.writes.get(buffer, False):
            return False
        for other, effects in self.parts.scheduled:
            if buffer not in effects.touches() or other.same_as(stmt):
                continue
            same = isinstance(other, tirx.IfThenElse) and tirx.structural_equal(
                other.condition, stmt.condition
            )
            if not same:
                return False
        return True

    def _keep_sources_in_step(self) -> None:
        """A copy whose address another one brings is made where that one is, and waits for it."""
        scheduled = self.parts.scheduled
        while (found := self._address_of_another()) is not None:
            n, m, buffer = found
            self._refuse(m, f"its address is read from `{buffer.name}`, copied just before")
            self.ahead.discard(m)
            if n in self.ahead and all(
                not set(scheduled[n][1].writes) & e.reads
                for k, (_, e) in enumerate(scheduled) if k not in (n, m)
            ):  # fmt: skip
                self._refuse(n, f"another copy needs `{buffer.name}` at once, for its address")
                self.ahead.discard(n)

    def _address_of_another(self) -> tuple[int, int, Any] | None:
        for m in sorted(self.ahead):
            for n, (_, effects) in enumerate(self.parts.scheduled):
                shared = set(effects.writes) & self.parts.scheduled[m][1].reads
                if n != m and shared:
                    return n, m, next(iter(shared))
        return None


def _copies(stmt: Any) -> list[tuple[Any, Any]]:
    """(source, destination) of each copy in a statement, conditional ones too."""
    stmt = unwrapped(stmt)
    if isinstance(stmt, tirx.SeqStmt):
        return [c for s in stmt.seq for c in _copies(s)]
    if isinstance(stmt, tirx.IfThenElse):
        cases = [stmt.then_case, *([] if stmt.else_case is None else [stmt.else_case])]
        return [c for s in cases for c in _copies(s)]
    copied = copied_tile(stmt)
    if copied is not None:
        return [copied]
    # What computes on the way is a copy too, of a kind that cannot be asynchronous.
    loads = [x.source for x in collect(stmt, tirx.TensorLoad)]
    stores = [x.buffer for x in collect(stmt, tirx.BufferStore)]
    return [
        (a, b) for b in stores if str(b.scope()) in SHARED for a in loads
        if str(a.scope()) == "global"
    ]  # fmt: skip


def _asks_to_wait(stmt: Any) -> bool:
    """Whether a copy in a statement says that it wants no asynchronous instruction."""
    return any(
        op_of(c) == "copy" and c.attrs is not None and c.attrs.get("prefer_instruction") == "sync"
        for c in collect(stmt, tirx.Call)
    )


def _only_copies(stmt: Any) -> bool:
    stmt = unwrapped(stmt)
    if isinstance(stmt, tirx.SeqStmt):
        return all(_only_copies(s) for s in stmt.seq)
    if isinstance(stmt, tirx.IfThenElse):
        cases = [stmt.then_case, *([] if stmt.else_case is None else [stmt.else_case])]
        return all(_only_copies(s) for s in cases)
    return isinstance(stmt, tirx.Bind) or copied_tile(stmt) is not None


def _is_movable(copied: tuple[Any, Any]) -> bool:
    source, destination = copied
    return (
        str(source.scope()) == "global"
        and str(destination.scope()) in SHARED
        and str(source.dtype) == str(destination.dtype)
    )


def _may_leave(body: Any) -> bool:
    """Whether the loop around `body` may end early."""
    for s in statements(body):
        if isinstance(s, (tirx.Break, tirx.Continue)):
            return True
        if isinstance(s, (tirx.For, tirx.While)):
            continue  # a jump in there leaves the inner loop
        if isinstance(s, tirx.IfThenElse):
            cases = [s.then_case, *([] if s.else_case is None else [s.else_case])]
            if any(_may_leave(c) for c in cases):
                return True
            continue
        within = isinstance(s, tirx.AttrStmt) and _may_leave(s.body)
        if within or called_op(s) in ("thread_return", "loop_break"):
            return True
    return False


def needed_binds(node: Any, binds: Sequence[Any]) -> list[Any]:
    """The names that `node` uses, in order, and the names those use."""
    wanted: list[Any] = []
    nodes = [node]
    for bind in reversed(binds):
        if any(uses(n, [bind.var]) for n in nodes):
            wanted.insert(0, bind)
            nodes.append(bind.value)
    return wanted
