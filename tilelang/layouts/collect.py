"""What does every statement of a launch demand, and of which threads?

The whole block is one group of threads; the body of `with T.ws(…):` is one of its own. A fragment
belongs to the group that works on it; one that several groups work on is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilelang.layout.constraints import Origin
from tilelang.layouts.ahead import runs_ahead
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import counter_of
from tilelang.layouts.machine import Machine
from tilelang.layouts.rules import RULES, annotation, parallel, scalar
from tilelang.layouts.rules.naming import access_origin, origin_of
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import Access, accesses, storage
from tilelang.program.buffer import Buffer, Region

SOME = 8  # how often a loop of unknown range is taken to run
WARP_GROUP = 128  # threads of one index of `T.ws`

# Operations that touch every element of a fragment in place, whatever its layout.
_ANYWHERE = frozenset({"fill", "reducer_init"})
# What hands out the address of a buffer: its elements must lie where C code expects them.
_ADDRESSES = frozenset({"access_ptr", "address_of", "tvm_access_ptr", "call_extern"})


@dataclass(slots=True, eq=False)
class Collected:
    """The demands of one launch."""

    launch: st.Launch
    threads: int | None
    groups: tuple[Builder, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    reasons: dict[Buffer, str] = field(default_factory=dict)
    group_users: dict[Buffer, dict[tuple[int, int], Origin]] = field(default_factory=dict)


def collect(launch: st.Launch, machine: Machine, plain: frozenset[int] = frozenset()) -> Collected:
    """Read a launch. Without a known number of threads nothing is demanded.

    `plain` are gemms, by identity, that warp groups are known not to do."""
    extents = [arith.constant_value(e) for _, e in launch.threads]
    sizes = [n for n in extents if n is not None]
    buffers = tuple(s.buffer for s in st.walk_statements(launch.body) if isinstance(s, st.Allocate))
    if len(sizes) != len(extents):
        return Collected(launch, None, (), buffers)
    threads = 1
    for size in sizes:
        threads *= size
    axes = tuple((var, size) for (var, _), size in zip(launch.threads, sizes, strict=True))
    reader = _Reader(machine, threads, axes, plain)
    reader.assign_groups(launch.body)
    reader.block(launch.body, reader.whole)
    groups = tuple(reader.groups.values())
    reasons = {buffer: why for group in groups for buffer, why in group.unknown.items()}
    return Collected(launch, threads, groups, buffers, reasons, reader.users)


class _Reader:
    """Walks the statements of one launch with the group of threads that runs them."""

    def __init__(
        self, machine: Machine, threads: int, axes: tuple[tuple[ex.Var, int], ...],
        plain: frozenset[int],
    ) -> None:  # fmt: skip
        self.machine = machine
        self.plain = plain
        self.axes = axes
        self.whole = (0, threads)
        self.groups: dict[tuple[int, int], Builder] = {}
        self.scalars: dict[tuple[int, int], scalar.Threads] = {}
        self.conditions: tuple[ex.Expr, ...] = ()
        self.users: dict[Buffer, dict[tuple[int, int], Origin]] = {}
        self.shared_by_groups: set[Buffer] = set()
        self._group(self.whole)

    def assign_groups(self, body: st.Block) -> None:
        """Find the fragments that several groups of threads work on."""
        for stmt, group in _with_groups(body, self.whole):
            if isinstance(stmt, st.TileOp) and stmt.name in _ANYWHERE:
                continue
            for access in accesses(stmt):
                if access.buffer.is_fragment:
                    users = self.users.setdefault(storage(access.buffer), {})
                    users.setdefault(group, _user(stmt, access))
        self.shared_by_groups = {b for b, groups in self.users.items() if len(groups) > 1}

    def block(self, block: st.Block, group: tuple[int, int]) -> None:
        """Statements in order."""
        for stmt in block:
            self.statement(stmt, group)

    def statement(self, stmt: st.Stmt, group: tuple[int, int]) -> None:
        """One statement and what is in it."""
        b = self._group(group)
        match stmt:
            case st.TileOp():
                self._operation(b, stmt)
            case st.For(kind="parallel"):
                parallel.demand(b, stmt)
            case st.For():
                outer, times, ahead = b.counters, b.times, b.ahead
                counter = counter_of(stmt)
                b.counters = outer if counter is None else (*outer, counter)
                b.times = times * (SOME if counter is None else len(counter.values))
                b.ahead = ahead or runs_ahead(stmt)
                self.block(stmt.body, group)
                b.counters, b.times, b.ahead = outer, times, ahead
            case st.If(condition=condition, then=then, orelse=orelse):
                scalar.demand(self._threads(group), stmt, self.conditions)
                self._under(condition, then, group)
                self._under(ex.Unary("not", condition, ex.BOOL), orelse, group)
            case st.Scoped(body=body):
                self.block(body, group_of(stmt, group))
            case st.While(body=body):
                self.block(body, group)
            case st.Annotate():
                annotation.demand(b, stmt)
            case st.Launch():
                pass
            case _:
                self._addresses(b, stmt)
                scalar.demand(self._threads(group), stmt, self.conditions)

    def _under(self, condition: ex.Expr, block: st.Block, group: tuple[int, int]) -> None:
        outer = self.conditions
        self.conditions = (*outer, condition)
        self.block(block, group)
        self.conditions = outer

    def _operation(self, b: Builder, op: st.TileOp) -> None:
        rule = RULES.get(op.name)
        if rule is not None:
            rule(b, op)
            return
        for arg in op.args:
            if isinstance(arg, Region) and arg.buffer.is_fragment:
                b.unknown.setdefault(arg.buffer, f"`T.{op.name}` has its own layouts")

    def _addresses(self, b: Builder, stmt: st.Stmt) -> None:
        if not isinstance(stmt, (st.Evaluate, st.Let)):
            return
        for node in ex.walk(stmt.value):
            if isinstance(node, ex.Intrinsic) and node.name in _ADDRESSES:
                for arg in node.args:
                    if isinstance(arg, Region) and arg.buffer.is_shared:
                        b.unknown.setdefault(storage(arg.buffer), "its address is taken")

    def _group(self, group: tuple[int, int]) -> Builder:
        found = self.groups.get(group)
        if found is None:
            first, last = group
            found = Builder(self.machine, last - first, first, self.plain)
            self.groups[group] = found
        for buffer in self.shared_by_groups:
            found.unknown.setdefault(buffer, "several warp groups work on it")
        return found

    def _threads(self, group: tuple[int, int]) -> scalar.Threads:
        if group not in self.scalars:
            self.scalars[group] = scalar.Threads(self._group(group), self.axes)
        return self.scalars[group]


def group_of(stmt: st.Scoped, group: tuple[int, int]) -> tuple[int, int]:
    """The threads that run the body of a frame: `[first, last)`."""
    indices = [i for i in stmt.args if isinstance(i, int)]
    if stmt.kind != "ws" or not indices or len(indices) != len(stmt.args):
        return group
    first, last = min(indices) * WARP_GROUP, (max(indices) + 1) * WARP_GROUP
    return (max(first, group[0]), min(last, group[1])) if first < group[1] else group


def _user(stmt: st.Stmt, access: Access) -> Origin:
    if isinstance(stmt, st.TileOp):
        return origin_of(stmt)
    return access_origin(access.buffer, tuple(r.min for r in access.ranges), access.span)


def _with_groups(
    block: st.Block, group: tuple[int, int]
) -> Iterator[tuple[st.Stmt, tuple[int, int]]]:
    for stmt in block:
        yield stmt, group
        inner = group_of(stmt, group) if isinstance(stmt, st.Scoped) else group
        for body in st.bodies(stmt):
            yield from _with_groups(body, inner)
