"""Which threads take one side of a branch, and at which barriers may they wait for each other?

Where those are whole warps, at a named barrier of their own: the same threads always use the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tilelang.analysis.divergence import Divergence
from tilelang.analysis.shared_accesses import (
    Branch,
    LaunchTree,
    Loop,
    Node,
    leaves,
    named_barriers,
)

_WARP: Final = 32
_LAST_NAMED: Final = 15  # barrier 0 is that of the whole block


@dataclass(frozen=True, slots=True)
class Region:
    """Which barriers may stand here: of the whole block, of some warps, or of the same lanes
    (`mask`) of warps, or none."""

    kind: Literal["block", "warps", "lanes", "none"] = "block"
    name: int = 0
    count: int = 0
    mask: int | None = None


class Groups:
    """The groups of threads of one launch."""

    def __init__(self, tree: LaunchTree, uniform: Divergence) -> None:
        self._uniform = uniform
        self._regions: dict[tuple[Node, bool], Region] = {}
        # Numbers of named barriers by the threads they are for; the author has taken some.
        self._names: dict[bytes, int] = {}
        self._taken = {n for leaf in leaves(tree.body) for n in named_barriers(leaf)}
        self._signalling = {
            self.key(node, side)
            for node in branches(tree.body)
            for side in (True, False)
            if self._side_crosses(node, side) and not uniform.is_uniform(node.condition)
        }

    def signal(self, key: bytes) -> bool:
        """Whether a group signals to others somewhere."""
        return key in self._signalling

    def crosses(self, node: Branch | Loop) -> bool:
        """Whether threads in there signal to others, or wait for them."""
        match node:
            case Branch():
                return self._side_crosses(node, True) or self._side_crosses(node, False)
            case Loop():
                return any(leaf.signals for leaf in leaves((node,)))

    def _side_crosses(self, node: Branch, side: bool) -> bool:
        signals = [x for x in leaves(node.then if side else node.orelse) if x.signals]
        if not signals:
            return False
        # A named barrier of just these threads is their own affair.
        mask = self._uniform.selected(node.condition)
        count = 0 if mask is None else int((mask if side else ~mask).sum())
        return any(x.meets == 0 or x.meets != count for x in signals)

    def key(self, node: Branch, side: bool) -> bytes:
        """Which threads take a side of a branch; the branch itself where that is not known."""
        mask = self._uniform.selected(node.condition)
        if mask is None:
            return f"{id(node)} {side}".encode()
        found: bytes = (mask if side else ~mask).tobytes()
        return found

    def region(self, node: Branch, side: bool, region: Region) -> Region:
        """The barriers that may stand in one side of a divergent branch."""
        found = self._regions.get((node, side))
        if found is None:
            found = self._regions[node, side] = self._new_region(node, side, region)
        return found

    def _new_region(self, node: Branch, side: bool, region: Region) -> Region:
        mask = self._uniform.selected(node.condition)
        if mask is None or region.kind != "block" or len(mask) % _WARP:
            return Region("none")
        warps = (mask if side else ~mask).reshape(-1, _WARP)
        if not warps.any():
            return Region("none")  # nobody comes here: no barrier is spent on it
        if (warps.all(1) != warps.any(1)).any():
            lanes = {sum(1 << n for n in range(_WARP) if w[n]) for w in warps if w.any()}
            return Region("lanes", mask=lanes.pop()) if len(lanes) == 1 else Region("none")
        name = self._name_for(warps.tobytes())
        if name is None:
            return Region("none")
        return Region("warps", name, int(warps.sum()))

    def _name_for(self, threads: bytes) -> int | None:
        """The number of the named barrier of some threads, None when all are taken."""
        if threads not in self._names:
            taken = self._taken | set(self._names.values())
            free = (n for n in range(1, _LAST_NAMED + 1) if n not in taken)
            number = next(free, None)
            if number is None:
                return None
            self._names[threads] = number
        return self._names[threads]


def branches(nodes: Sequence[Node]) -> Iterator[Branch]:
    """Every branch below `nodes`."""
    for node in nodes:
        match node:
            case Loop(body=body):
                yield from branches(body)
            case Branch(then=then, orelse=orelse):
                yield node
                yield from branches((*then, *orelse))
            case _:
                pass
