"""What may still be met by another thread, at one point of a launch?

Pending: accesses since the last barrier. Under way: asynchronous ones that are not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilelang.analysis.shared_accesses import Access, Event, Node

_Key: TypeAlias = "tuple[int, int, bool]"


@dataclass(frozen=True, slots=True)
class Item:
    """A pending access: where it was, how far in a barrier after it may stand, and whether the
    lanes of each warp have met since."""

    access: Access
    path: tuple[Node, ...]
    limit: int
    lanes_met: bool = False

    @property
    def key(self) -> _Key:
        """Equal for what is the same to who comes later."""
        return id(self.access), self.limit, self.lanes_met

    def met(self) -> Item:
        """The same, once the lanes of each warp have met."""
        return Item(self.access, self.path, self.limit, True)


@dataclass(slots=True)
class State:
    """`queues` are the groups under way, oldest first; the last one is still open.

    `groups` are the states among the threads of groups that signal to each other, by which threads
    they are. `floor` is how far in a barrier has to stand at least: within the code of the group.
    `parted` is what nothing but one barrier keeps apart from what comes now.
    """

    pending: dict[_Key, Item] = field(default_factory=dict)
    queues: dict[str, list[tuple[Access, ...]]] = field(default_factory=dict)
    groups: dict[bytes, State] = field(default_factory=dict)
    floor: int = 0
    parted: dict[_Key, tuple[Node, Item]] = field(default_factory=dict)

    def copy(self) -> State:
        """An independent state with the same contents."""
        queues = {k: list(v) for k, v in self.queues.items()}
        groups = {k: s.copy() for k, s in self.groups.items()}
        return State(dict(self.pending), queues, groups, self.floor, dict(self.parted))

    def clear(self) -> None:
        """Nothing is left."""
        self.pending, self.queues, self.groups, self.parted = {}, {}, {}, {}

    def add(self, item: Item) -> None:
        """`item` is pending from here on."""
        self.pending.setdefault(item.key, item)

    def start(self, access: Access) -> None:
        """An asynchronous access joins the open group of its queue."""
        assert access.queue is not None
        groups = self.queues.setdefault(access.queue, [()])
        groups[-1] = _unique((*groups[-1], access))

    def meet(self, level: str, barrier: Node | None = None) -> None:
        """A barrier of the block, or of each warp; what `barrier` parts is remembered for it."""
        for group in self.groups.values():
            group.meet(level, barrier)
        before = list(self.pending.values())
        again = [] if level == "block" else list(self.parted.values())
        self.pending, self.parted = {}, {}
        for known, item in again:
            self._part(known, item.met())
        if barrier is not None:
            for item in before:
                self._part(barrier, item)
        for item in () if level == "block" else before:
            self.add(item.met())

    def _part(self, barrier: Node, item: Item) -> None:
        self.parted.setdefault(item.key, (barrier, item))

    def queue_event(self, event: Event, path: tuple[Node, ...]) -> None:
        """Close a group, or wait: what is complete becomes pending."""
        assert event.queue is not None
        groups = self.queues.setdefault(event.queue, [()])
        if event.kind == "commit":
            groups.append(())
            return
        while len(groups) - 1 > event.groups:
            for access in groups.pop(0):
                self.add(Item(access, path, len(path) - 1))

    def join(self, other: State) -> None:
        """Either state may be the one that is met; groups are aligned at the newest."""
        for item in other.pending.values():
            self.add(item)
        for barrier, item in other.parted.values():
            self._part(barrier, item)
        for queue, groups in other.queues.items():
            mine = self.queues.get(queue, [()])
            length = max(len(mine), len(groups))
            padded = [[()] * (length - len(g)) + list(g) for g in (mine, groups)]
            self.queues[queue] = [_unique((*a, *b)) for a, b in zip(*padded, strict=True)]
        for key, theirs in other.groups.items():
            own = self.groups.setdefault(key, State(floor=theirs.floor))
            own.join(theirs)

    def mapped(self, change: Callable[[Access], Access], limit: int) -> State:
        """Every access changed; barriers go no further in than `limit`."""
        found = State()

        def changed(item: Item) -> Item:
            inside = min(item.limit, limit)
            return Item(change(item.access), item.path, inside, item.lanes_met)

        for item in self.pending.values():
            found.add(changed(item))
        for barrier, item in self.parted.values():
            found._part(barrier, changed(item))
        for queue, groups in self.queues.items():
            found.queues[queue] = [_unique([change(a) for a in g]) for g in groups]
        found.groups = {k: s.mapped(change, limit) for k, s in self.groups.items()}
        found.floor = self.floor
        return found

    def signature(self) -> Any:
        """Equal for states with the same contents."""
        queues = tuple(
            (q, tuple(tuple(map(id, g)) for g in groups)) for q, groups in self.queues.items()
        )
        groups = tuple((k, s.signature()) for k, s in self.groups.items())
        return frozenset(self.pending), queues, groups

    def accesses(self) -> set[int]:
        """Everything pending or under way, by identity."""
        found = {id(item.access) for item in self.pending.values()}
        found.update(*(s.accesses() for s in self.groups.values()))
        return found | {id(a) for groups in self.queues.values() for g in groups for a in g}


def _unique(accesses: Sequence[Access]) -> tuple[Access, ...]:
    return tuple({id(a): a for a in accesses}.values())
