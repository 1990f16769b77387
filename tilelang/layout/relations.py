"""How one layout follows from another through an index map, and where two of them disagree.

All of it works on tables of owners (`ownership.py`), so that any index map will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tilelang.layout.constraints import Mode
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import IndexMap, linear_index, unflatten
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.ownership import contained, distinct_owners

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class IndexFacts:
    """An index map flattened: iteration `x` (row-major) touches `elements[x, serial]`.

    `touched` marks the elements inside the buffer; those outside are clipped into it.
    """

    elements: NDArray[np.int64]
    touched: NDArray[np.bool_] | None
    size: int
    is_identity: bool
    is_injective: bool
    is_surjective: bool
    is_anywhere: bool = False

    @property
    def is_bijective(self) -> bool:
        """Whether iterations and elements correspond one to one."""
        once = self.elements.shape[1] == 1 and self.touched is None
        return once and self.is_injective and self.is_surjective


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An element that does not live where it is used: one example of possibly many.

    `what` says what the numbers count: threads, register slots or memory offsets.
    """

    element: tuple[int, ...]
    owners: tuple[int, ...]
    used: tuple[int, ...]
    crosses_warps: bool
    what: str = "thread"

    def __str__(self) -> str:
        return (
            f"element {self.element} lives in {self.what} {_short(self.owners)}, "
            f"used in {_short(self.used)}"
        )


@lru_cache(maxsize=1024)
def index_facts(index: Layout, loop: tuple[int, ...], buffer: tuple[int, ...]) -> IndexFacts:
    """The facts of `index` from iterations of `loop` to elements of `buffer`."""
    size, iterations = math.prod(buffer), math.prod(loop)
    coordinates = list(index.map.table)
    touched = None
    if any(n > limit for n, limit in zip(index.out_shape, buffer, strict=True)):
        inside = [c < limit for c, limit in zip(coordinates, buffer, strict=True)]
        touched = np.logical_and.reduce(inside).reshape(iterations, -1)
        clipped = zip(coordinates, buffer, strict=True)
        coordinates = [np.minimum(c, limit - 1) for c, limit in clipped]
    elements: NDArray[np.int64] = linear_index(coordinates, buffer).reshape(iterations, -1)
    seen = elements if touched is None else elements[touched]
    hits = np.bincount(seen.ravel(), minlength=size)
    same = loop == buffer and elements.size == size
    return IndexFacts(
        elements,
        touched,
        size,
        is_identity=same and bool(np.array_equal(elements.ravel(), np.arange(size))),
        is_injective=int(hits.max()) <= 1,
        is_surjective=bool(hits.all()),
    )


def anywhere(loop: tuple[int, ...], buffer: tuple[int, ...]) -> IndexFacts:
    """The facts of an index that is data: all iterations together may touch every element."""
    size, iterations = math.prod(buffer), math.prod(loop)
    elements = np.broadcast_to(np.arange(size), (iterations, size))
    return IndexFacts(elements, None, size, False, False, True, is_anywhere=True)


def through(buffer: Fragment, facts: IndexFacts, loop: tuple[int, ...]) -> Fragment:
    """The loop whose iterations run where the elements they touch live."""
    if facts.is_identity:
        return buffer
    places = buffer.map.table.reshape(2, buffer.size, buffer.replicas)
    taken = places[:, facts.elements[:, 0]]
    if facts.is_bijective:
        return Fragment.of_map(IndexMap.of_table(taken.reshape(2, *loop, buffer.replicas)))
    return Fragment.of_owners(loop, distinct_owners(taken[0]))


def onto(loop: Fragment, facts: IndexFacts, buffer: tuple[int, ...]) -> Fragment | None:
    """The buffer whose elements live where the iterations that touch them run; None when some
    element is not touched."""
    if not facts.is_surjective:
        return None
    if facts.is_identity:
        return loop
    if facts.is_bijective:
        places = loop.map.table.reshape(2, loop.size, loop.replicas)
        table = np.empty((2, facts.size, loop.replicas), dtype=np.int64)
        table[:, facts.elements[:, 0]] = places
        return Fragment.of_map(IndexMap.of_table(table.reshape(2, *buffer, loop.replicas)))
    rows = loop.owner_rows()
    serial, copies = facts.elements.shape[1], rows.shape[1]
    element = np.repeat(facts.elements.ravel(), copies)
    thread = np.repeat(rows, serial, axis=0).ravel()
    if facts.touched is not None:
        keep = np.repeat(facts.touched.ravel(), copies)
        element, thread = element[keep], thread[keep]
    return Fragment.of_owners(buffer, _rows_of_pairs(element, thread, facts.size))


def spread(buffer: Fragment, facts: IndexFacts, loop: tuple[int, ...], vector: int) -> Fragment:
    """A loop that reads each element several times: its readers are dealt out, `vector` at a
    time, to the threads that hold a copy."""
    rows = distinct_owners(buffer.owner_rows())
    elements = facts.elements[:, 0]
    order = np.argsort(elements, kind="stable")
    first = np.searchsorted(elements[order], elements[order])
    turn = np.empty(len(elements), dtype=np.int64)
    turn[order] = np.arange(len(elements)) - first
    threads = rows[elements, turn // vector % rows.shape[1]]
    return Fragment.of_owners(loop, threads[:, None])


def disagreement(
    mode: Mode,
    loop: Fragment,
    buffer: Fragment,
    facts: IndexFacts,
    shape: tuple[int, ...],
    warp: int,
) -> Disagreement | None:
    """Where an access breaks the rule: readers among owners, owners among writers."""
    if facts.is_identity and loop is buffer:
        return None
    if facts.is_anywhere:
        return _anywhere_disagreement(mode, loop, buffer, shape, warp)
    runs = np.repeat(loop.owner_rows(), facts.elements.shape[1], axis=0)
    lives = buffer.owner_rows()[facts.elements.ravel()]
    keep = None if facts.touched is None else np.nonzero(facts.touched.ravel())[0]
    if keep is not None:
        runs, lives = runs[keep], lives[keep]
    checks = {
        Mode.READ: ((runs, lives),),
        Mode.WRITE: ((lives, runs),),
        Mode.UPDATE: ((runs, lives), (lives, runs)),
    }[mode]
    for need, have in checks:
        bad = np.nonzero(~contained(need, have))[0]
        if len(bad):
            at = bad[0] if keep is None else keep[bad[0]]
            element = unflatten(int(facts.elements.ravel()[at]), shape)
            crosses = not bool(contained(need[bad] // warp, have[bad] // warp).all())
            owners, needed = _set(lives[bad[0]]), _set(runs[bad[0]])
            return Disagreement(element, owners, needed, crosses)
    return None


def owners_differ(
    need: Fragment, have: Fragment, warp: int, subset: bool = False
) -> Disagreement | None:
    """Where the owners of an element are not the ones needed (`subset`: not among them)."""
    if need is have:
        return None
    want, got = need.owner_rows(), have.owner_rows()
    fits = contained(want, got)
    if not subset:
        fits &= contained(got, want)
    bad = np.nonzero(~fits)[0]
    if not len(bad):
        return None
    crosses = not bool(contained(want[bad] // warp, got[bad] // warp).all())
    element = unflatten(int(bad[0]), have.shape)
    return Disagreement(element, _set(got[bad[0]]), _set(want[bad[0]]), crosses)


def slots_differ(need: Fragment, have: Fragment) -> Disagreement | None:
    """Where fragments with the same owners keep an element in different registers."""
    pitch = max(need.slots, have.slots)
    want, got = (
        (f.map.table[0] * pitch + f.map.table[1]).reshape(f.size, f.replicas) for f in (need, have)
    )
    bad = np.nonzero(~(contained(want, got) & contained(got, want)))[0]
    if not len(bad):
        return None
    element = unflatten(int(bad[0]), have.shape)
    slots = [_set(rows[bad[0]] % pitch) for rows in (got, want)]
    return Disagreement(element, slots[0], slots[1], False, "slot")


def _anywhere_disagreement(
    mode: Mode, loop: Fragment, buffer: Fragment, shape: tuple[int, ...], warp: int
) -> Disagreement | None:
    runs, lives = loop.owner_rows(), buffer.owner_rows()
    everyone = np.unique(runs)[None, :]
    if mode is Mode.READ:
        need, have = np.repeat(everyone, len(lives), axis=0), lives
    else:
        owners = np.unique(lives)[None, :]
        need, have = np.repeat(owners, len(runs), axis=0), runs
    bad = np.nonzero(~contained(need, have))[0]
    if not len(bad):
        return None
    at = int(bad[0]) if mode is Mode.READ else 0
    crosses = not bool(contained(need[bad] // warp, have[bad] // warp).all())
    return Disagreement(unflatten(at, shape), _set(lives[at]), _set(everyone[0]), crosses)


def _rows_of_pairs(
    element: NDArray[np.int64], thread: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Owners of each element from (element, thread) pairs; every element occurs."""
    threads = int(thread.max()) + 1
    pairs = np.unique(element * threads + thread)
    of, who = pairs // threads, pairs % threads
    counts = np.bincount(of, minlength=size)
    first = np.searchsorted(of, np.arange(size))
    rows: NDArray[np.int64] = np.repeat(who[first][:, None], int(counts.max()), axis=1)
    rows[of, np.arange(len(of)) - first[of]] = who
    return rows


def _set(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(sorted({int(x) for x in row}))


def _short(values: tuple[int, ...]) -> str:
    if len(values) > 2 and values == tuple(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    shown = ", ".join(map(str, values[:4]))
    return f"{shown}, …" if len(values) > 4 else shown
