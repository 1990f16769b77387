"""Where does a thread have to wait for others, because they meet in shared memory?

`plan_barriers` runs a launch symbolically. What has touched shared memory since the last barrier is
pending; an access that conflicts with a pending one of another thread needs a barrier before the
outermost statement that holds it and not the other. Loops that hold barriers are run for their
first iterations, which meet what comes before, and then on from an arbitrary one until nothing
changes. An asynchronous copy becomes pending where it is waited for. At the end each barrier that
the others make unnecessary is dropped.

Code that only some threads run gets barriers of its own where those are whole warps, and never one
of the block. Threads that signal to each other there are ordered by their author.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from tilelang.analysis.barrier_regions import Groups, Region
from tilelang.analysis.divergence import Divergence
from tilelang.analysis.hazard_state import Item, State
from tilelang.analysis.moved_accesses import Moved
from tilelang.analysis.overlaps import Level, Overlaps, are_apart
from tilelang.analysis.periods import period
from tilelang.analysis.shared_accesses import (
    Access,
    Branch,
    LaunchTree,
    Leaf,
    Loop,
    Node,
    leaves,
)
from tilelang.ir import build
from tilelang.ir.spans import from_tir

# A loop is run no further than this to see what its iterations leave to later ones.
_ROUNDS: Final = 12
_MOST_DISTANCES: Final = 64
_BY_AUTHOR: Final = ("mbarrier",)


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of the block, of each warp, of the lanes of `mask` in it, or (`count` > 0) of the
    threads of a named one."""

    level: Literal["block", "warp"] = "block"
    name: int = 0
    count: int = 0
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Unordered:
    """Two accesses of different threads that no barrier can keep apart where they stand."""

    first: Access
    second: Access


Hazard: TypeAlias = "tuple[Access, Access]"  # the earlier, and the one that has to wait for it


@dataclass(slots=True)
class BarrierPlan:
    """What goes before which node, and the pairs of accesses it keeps apart; `unordered` is what
    has no place for a barrier."""

    before: dict[Node, Barrier] = field(default_factory=dict)
    hazards: dict[Node, list[Hazard]] = field(default_factory=dict)
    unordered: list[Unordered] = field(default_factory=list)
    queries: int = 0


def plan_barriers(tree: LaunchTree, uniform: Divergence, thorough: bool = False) -> BarrierPlan:
    """The barriers that the launch needs, and no others. `thorough`: with all that each keeps
    apart, in the order in which it happens, and not only one pair."""
    planner = _Planner(tree, uniform)
    planner.settle()
    planner.prune()
    planner.plan.queries = planner.overlaps.queries
    if thorough:
        planner.explain()
    return planner.plan


class _NeedsBarrier(Exception):
    def __init__(self, node: Node, level: Level, first: Access, second: Access) -> None:
        super().__init__()
        self.node, self.level, self.hazard = node, level, (first, second)


_Path = tuple[Node, ...]


class _Planner:
    def __init__(self, tree: LaunchTree, uniform: Divergence) -> None:
        self.tree, self.uniform = tree, uniform
        self.plan = BarrierPlan()
        self.overlaps = Overlaps(tree)
        self.moved = Moved(self.overlaps)
        self.moved.note_ranges(tree.body)
        self._regions: dict[Node, Region] = {}
        self._clean: set[Node] = set()  # loops whose iterations were found to be in order
        self._groups = Groups(tree, uniform)
        self._earlier: dict[Node, Leaf] = {}  # the statement right before another
        # By barrier and place, what it alone keeps apart, where that is to be known.
        self._explained: dict[Node, dict[object, Hazard]] | None = None

    def settle(self) -> None:
        """Add barriers until no conflict is left."""
        while (found := self._conflict_left()) is not None:
            found.node = self._before_preparation(found.node)
            region = self._regions[found.node]
            self.plan.hazards[found.node] = [found.hazard]
            if found.level is Level.WARP:
                self.plan.before[found.node] = Barrier("warp", mask=region.mask)
            elif region.kind == "warps":
                self.plan.before[found.node] = Barrier("block", region.name, region.count)
            else:
                self.plan.before[found.node] = Barrier()

    def _before_preparation(self, node: Node) -> Node:
        """What a barrier before `node` may stand before as well, to keep together what belongs
        together."""
        while (earlier := self._earlier.get(node)) is not None and earlier.prepares:
            node = earlier
        return node

    def prune(self) -> None:
        """Drop each barrier that the others make unnecessary."""
        for node in list(self.plan.before):
            kept = self.plan.before.pop(node)
            if self._conflict_left() is not None:
                self.plan.before[node] = kept
        self._conflict_left()

    def explain(self) -> None:
        """Tell of each barrier all that meets where it alone is missing."""
        self._explained = {node: {} for node in self.plan.before}
        self._conflict_left()
        for node, found in self._explained.items():
            self.plan.hazards[node] = list(found.values()) or self.plan.hazards[node]
        self._explained = None

    def _conflict_left(self) -> _NeedsBarrier | None:
        self.plan.unordered.clear()
        self._clean.clear()
        try:
            self._block(self.tree.body, State(), (), Region())
        except _NeedsBarrier as found:
            return found
        return None

    # --- statements ---

    def _block(self, nodes: Sequence[Node], state: State, path: _Path, region: Region) -> None:
        for n, node in enumerate(nodes):
            self._regions[node] = region
            before = nodes[n - 1] if n else None
            if isinstance(before, Leaf):
                self._earlier[node] = before
            planned = self.plan.before.get(node)
            if planned is not None:
                state.meet(planned.level, None if self._explained is None else node)
            self._node(node, state, (*path, node), region)

    def _node(self, node: Node, state: State, path: _Path, region: Region) -> None:
        match node:
            case Leaf(event=event):
                self._touch(node.accesses, state, path)
                if event is not None and event.queue is not None:
                    state.queue_event(event, path)
                elif event is not None:
                    state.meet(event.kind)
                elif node.meets and self._all_meet(node.meets, region):
                    state.meet("block")
            case Loop():
                self._loop(node, state, path, region)
            case Branch():
                self._branch(node, state, path, region)

    def _all_meet(self, count: int, region: Region) -> bool:
        """Whether no thread that comes to a named barrier of so many goes on without the others."""
        return (region.kind == "warps" and count == region.count) or (
            region.kind in ("block", "warps") and count == self.tree.count
        )

    def _touch(
        self, accesses: Sequence[Access], state: State, path: _Path, inside: bool = False
    ) -> None:
        """Check accesses against what is pending, then remember them; `inside` says that what is
        below the last node of `path` comes after them."""
        # TMA and what it meets are kept apart by mbarriers, which the author places.
        now = [self.moved.now(a) for a in accesses if a.queue not in _BY_AUTHOR]
        for access in now:
            self._check(access, state, path)
        for access in now:
            if access.queue is not None:
                state.start(access)
            else:
                state.add(Item(access, path, len(path) if inside else len(path) - 1))

    def _check(self, access: Access, state: State, path: _Path) -> None:
        for item in state.pending.values():
            level = self._meeting(item.access, access)
            if level is Level.NONE or (level is Level.WARP and item.lanes_met):
                continue
            depth, limit = 0, min(item.limit, len(path) - 1)
            shared = zip(item.path[:limit], path, strict=False)
            while (pair := next(shared, None)) is not None and pair[0] is pair[1]:
                depth += 1
            depth = max(depth, state.floor)
            self._need(path[depth], item.access, access, level)
        if self._explained is not None:
            self._explain(access, state)

    def _explain(self, access: Access, state: State) -> None:
        assert self._explained is not None
        for barrier, item in state.parted.values():
            found = self._explained[barrier]
            place = _place(item.access, access)
            if place in found or are_apart(item.access, access):
                continue
            level = self._meeting(item.access, access)
            if level is Level.BLOCK or (level is Level.WARP and not item.lanes_met):
                found[place] = item.access, access

    def _meeting(self, x: Access, y: Access) -> Level:
        if x.kind == y.kind and x.kind != "write":
            return Level.NONE
        return self.overlaps.level(x, y)

    def _need(self, node: Node, first: Access, second: Access, level: Level) -> None:
        kind = self._regions[node].kind
        if kind == "none" or (kind == "lanes" and level is Level.BLOCK):
            if second.is_tensor:
                return  # blocks meet there, too: who tells threads apart orders them himself
            found = Unordered(first, second)
            if found not in self.plan.unordered:
                self.plan.unordered.append(found)
            return
        raise _NeedsBarrier(node, level, first, second)

    # --- branches, and code that only some threads run ---

    def _branch(self, node: Branch, state: State, path: _Path, region: Region) -> None:
        if not self.uniform.is_uniform(node.condition):
            self._divergent(node, state, path, region)
            return
        self._touch(node.reads, state, path, inside=True)
        other = state.copy()
        with self.moved.under(node.condition, True):
            self._block(node.then, state, path, region)
        with self.moved.under(node.condition, False):
            self._block(node.orelse, other, path, region)
        state.join(other)

    def _divergent(self, node: Branch | Loop, state: State, path: _Path, region: Region) -> None:
        """To the threads that do not run it, it is one statement."""
        if self._groups.crosses(node):
            reads = node.condition if isinstance(node, Loop) else node.reads
            self._touch(reads, state, path)
            self._signalling(node, state, path, region)
            return
        self._touch(tuple(self._unit(node, ())), state, path)
        for leaf in leaves((node,)):
            if leaf.event is not None and leaf.event.queue is not None:
                state.queue_event(leaf.event, path)
        if isinstance(node, Loop):
            self._plain_inside(node, path, Region("none"))
            return
        for side, nodes in ((True, node.then), (False, node.orelse)):
            inner = self._groups.region(node, side, region)
            # What a group that signals elsewhere touches here meets what it does there.
            key = self._groups.key(node, side)
            own = self._own_state(key, state, path) if self._groups.signal(key) else State()
            if not self._groups.signal(key):
                self._touch(node.reads, own, path, inside=True)
            with self.moved.under(node.condition, side):
                self._block(nodes, own, path, inner)

    def _signalling(self, node: Branch | Loop, state: State, path: _Path, region: Region) -> None:
        """Threads that signal to others: their author keeps those apart, we the threads of one
        group. What TMA overwrites must not be in use by who starts it."""
        if region.kind in ("block", "warps"):
            for access in self._unit(node, ()):
                if access.queue == "mbarrier":
                    self._check(self.moved.now(access), state, path)
        if isinstance(node, Loop):
            return
        for side, nodes in ((True, node.then), (False, node.orelse)):
            inner = self._groups.region(node, side, region)
            own = self._own_state(self._groups.key(node, side), state, path)
            with self.moved.under(node.condition, side):
                self._block(nodes, own, path, inner)

    def _own_state(self, key: bytes, state: State, path: _Path) -> State:
        """What is open among the threads of a group; barriers between them stand in its code."""
        own = state.groups.setdefault(key, State())
        own.floor = len(path)
        return own

    def _unit(self, node: Node, guards: tuple[Any, ...]) -> Iterator[Access]:
        """All accesses below `node`, as if they happened at once."""
        match node:
            case Leaf(accesses=accesses):
                yield from (self.moved.guarded(a, guards) for a in accesses)
            case Loop(condition=condition, body=body):
                inner = (*condition, *(a for n in body for a in self._unit(n, guards)))
                yield from (self.moved.repeated(a, node) for a in inner)
            case Branch(condition=condition, then=then, orelse=orelse):
                yield from (self.moved.guarded(a, guards) for a in node.reads)
                for n in then:
                    yield from self._unit(n, (*guards, condition))
                for n in orelse:
                    yield from self._unit(n, (*guards, self.moved.negation(condition)))

    # --- loops ---

    def _loop(self, node: Loop, state: State, path: _Path, region: Region) -> None:
        test = node.extent if node.var is not None else node.stmt.condition
        together = self.uniform.is_uniform(node.low) and self.uniform.is_uniform(test)
        if not together or _may_leave(node, self.uniform):
            self._divergent(node, state, path, region)
        elif node.free or not self._is_eventful(node.body):
            # Nothing inside orders anything: to what is around, it is one statement.
            self._touch(tuple(self._unit(node, ())), state, path)
            self._plain_inside(node, path, region)
        else:
            self._touch(node.condition, state, path, inside=True)
            self._eventful(node, state, path, region)

    def _is_eventful(self, nodes: Sequence[Node]) -> bool:
        """Whether something inside orders accesses."""
        for node in nodes:
            match node:
                case Leaf(event=event, signals=signals) if event is not None or signals:
                    return True
                case Loop(body=body) if self._is_eventful(body):
                    return True
                case Branch(then=then, orelse=orelse) if self._is_eventful((*then, *orelse)):
                    return True
                case _ if node in self.plan.before:
                    return True
        return False

    def _plain_inside(self, node: Loop, path: _Path, region: Region) -> None:
        """The iterations of a loop that orders nothing: each by itself, then pairs of them."""
        if node.free or self.moved.is_pinned or node in self._clean:
            return  # loops around it that stand at a first iteration come to an arbitrary one, too
        self._block(node.body, State(), path, region)
        units = [(n, tuple(map(self.moved.now, self._unit(n, ())))) for n in node.body]
        for _, earlier in units:
            for later_node, later in units:
                for x in earlier:
                    for y in later:
                        self._carried(node, x, y, later_node)
        self._clean.add(node)

    def _carried(self, node: Loop, x: Access, y: Access, place: Node) -> None:
        if x.queue in _BY_AUTHOR or y.queue in _BY_AUTHOR or x.memory is not y.memory:
            return
        if x.kind == y.kind and x.kind != "write":
            return
        if node.var is not None and node.var in self.overlaps.limits:
            # Most often they are apart in any two iterations, which one look shows.
            if self._meeting(self.moved.quantified(x, node), y) is Level.NONE:
                return
        for _ in range(self._distances(node, x, y)):
            x = self.moved.back(x, node)
            level = self._meeting(x, y)
            if level is not Level.NONE:
                self._need(place, x, y, level)
                return

    def _distances(self, node: Loop, x: Access, y: Access) -> int:
        """How many iterations apart two accesses have to be looked at to have seen all."""
        extent = None if node.extent is None else build.int_value(node.extent)
        most = _MOST_DISTANCES if extent is None else min(extent - 1, _MOST_DISTANCES)
        if node.var is None or x.start is None or y.start is None:
            return min(1, most)
        steps = [period(e, node.var) for e in (x.start, y.start, *x.guards, *y.guards)]
        known = [s for s in steps if s is not None]
        return min(most, max(known)) if len(known) == len(steps) else most

    def _repeat(self, node: Loop, path: _Path, region: Region) -> State:
        """Run iterations on from an arbitrary one until nothing changes; the state at the end."""
        state = State()
        extent = None if node.extent is None else build.int_value(node.extent)
        seen: Any = None
        for turn in range(_ROUNDS):
            if turn > 0:
                # What was this iteration is now the one before.
                state = state.mapped(lambda a: self.moved.back(a, node), len(path))
            self._block(node.body, state, path, region)
            if state.signature() == seen or turn + 1 == extent:
                break
            seen = state.signature()
        return state

    def _eventful(self, node: Loop, state: State, path: _Path, region: Region) -> None:
        """First iterations meet what was before; then on from an arbitrary one."""
        before = state.copy()
        extent = None if node.extent is None else build.int_value(node.extent)
        there = self.moved.turns(node)
        runs = _ROUNDS if there is None else min(max(there, 0), _ROUNDS)
        ends: list[State] = []
        first, done = state, False
        for turn in range(runs):
            with self.moved.at(node, turn):
                self._block(node.body, first, path, region)
            first = first.mapped(lambda a: a, len(path))
            ends.append(first.copy())
            done = not first.accesses() & before.accesses()
            if done:
                break
        steady = self._repeat(node, path, region)
        state.clear()
        if extent is not None and extent > 0:
            # What follows meets the last iteration, which is known.
            last = steady.mapped(lambda a: self.moved.last(a, node), len(path) - 1)
            if len(ends) < extent:
                ends = [last] if done else [*ends[-1:], last]
            else:
                ends = ends[-1:]
        else:
            state.join(before)
            ends.append(steady)
        for end in ends:
            state.join(end.mapped(lambda a: self.moved.quantified(a, node), len(path) - 1))


def _place(first: Access, second: Access) -> object:
    """What tells hazards apart for who reads of them."""
    spans = from_tir(first.span), from_tir(second.span)
    return first.name, first.kind, second.name, second.kind, spans


def _may_leave(node: Loop, uniform: Divergence) -> bool:
    """Whether some threads may leave a loop that others stay in."""

    def jumps(nodes: Sequence[Node], divergent: bool) -> bool:
        for n in nodes:
            match n:
                case Leaf():
                    if n.jumps and divergent:
                        return True
                case Loop():
                    if jumps(n.body, divergent or not uniform.is_uniform(n.extent)):
                        return True
                case Branch():
                    apart = divergent or not uniform.is_uniform(n.condition)
                    if jumps((*n.then, *n.orelse), apart):
                        return True
        return False

    return jumps(node.body, False)
