"""Which loops does a sequence of instructions have? By its jumps, not by what the source says.

A loop is the natural loop of a jump back to an instruction that every way to the jump passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Step(Protocol):
    """An instruction as far as the flow of control goes."""

    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def jumps_to(self) -> str | None: ...
    @property
    def falls_through(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class FlowLoop:
    """Positions of the instructions of a loop, those of loops inside too, and of its jumps back.
    `depth` counts the loops around it."""

    members: frozenset[int]
    jumps: tuple[int, ...]
    depth: int


def loops_of(steps: Sequence[Step]) -> tuple[FlowLoop, ...]:
    """The loops, outer ones before what they contain, in the order of their code."""
    blocks = _blocks(steps)
    order, dominators = _dominators(blocks.after)
    found: dict[int, tuple[set[int], list[int]]] = {}
    for source in order:
        for header in blocks.after[source]:
            if _dominates(header, source, dominators):
                members, jumps = found.setdefault(header, (set(), []))
                members |= _natural(header, source, blocks.after, frozenset(order))
                jumps.append(blocks.ends[source] - 1)
    made = []
    for members, jumps in found.values():
        around = sum(members < other for other, _ in found.values())
        inside = {n for b in members for n in range(blocks.starts[b], blocks.ends[b])}
        made.append(FlowLoop(frozenset(inside), tuple(sorted(jumps)), around))
    return tuple(sorted(made, key=lambda loop: (min(loop.members), loop.depth)))


@dataclass(frozen=True, slots=True)
class _Blocks:
    starts: list[int]
    ends: list[int]
    after: list[list[int]]


def _blocks(steps: Sequence[Step]) -> _Blocks:
    starts = {0} if steps else set()
    at_label: dict[str, int] = {}
    for n, step in enumerate(steps):
        for label in step.labels:
            at_label[label] = n
            starts.add(n)
        if (step.jumps_to is not None or not step.falls_through) and n + 1 < len(steps):
            starts.add(n + 1)
    ordered = sorted(starts)
    ends = [*ordered[1:], len(steps)] if ordered else []
    number = {start: n for n, start in enumerate(ordered)}
    after: list[list[int]] = []
    for n, end in enumerate(ends):
        last = steps[end - 1]
        found = []
        if last.falls_through and n + 1 < len(ordered):
            found.append(n + 1)
        if last.jumps_to is not None and last.jumps_to in at_label:
            found.append(number[at_label[last.jumps_to]])
        after.append(found)
    return _Blocks(ordered, ends, after)


def _dominators(after: Sequence[Sequence[int]]) -> tuple[list[int], dict[int, int]]:
    """Reachable blocks in reverse postorder, and the immediate dominator of each.

    Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
    """
    if not after:
        return [], {}
    postorder: list[int] = []
    seen = {0}
    stack = [(0, iter(after[0]))]
    while stack:
        block, rest = stack[-1]
        following = next((b for b in rest if b not in seen), None)
        if following is None:
            postorder.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(after[following])))
    rank = {block: n for n, block in enumerate(postorder)}
    before: dict[int, list[int]] = {b: [] for b in postorder}
    for block in postorder:
        for following in after[block]:
            before[following].append(block)
    order = postorder[::-1]
    found = {0: 0}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [b for b in before[block] if b in found]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    while rank[new] < rank[other]:
                        new = found[new]
                    while rank[other] < rank[new]:
                        other = found[other]
            if found.get(block) != new:
                found[block] = new
                changed = True
    return order, found


def _dominates(a: int, b: int, dominators: dict[int, int]) -> bool:
    while b != a:
        if b == 0:
            return False
        b = dominators[b]
    return True


def _natural(
    header: int, source: int, after: Sequence[Sequence[int]], reachable: frozenset[int]
) -> set[int]:
    before: dict[int, list[int]] = {}
    for block in reachable:
        for following in after[block]:
            before.setdefault(following, []).append(block)
    members, pending = {header}, [source]
    while pending:
        block = pending.pop()
        if block not in members:
            members.add(block)
            pending += before.get(block, [])
    return members
