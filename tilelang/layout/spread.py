"""Which element does a thread work on in each of its slots: a fragment seen from its threads.

    >>> spread = Spread.of(loop_layout((100, 8), threads=128, vector=4), threads=128)
    >>> spread.rounds, spread.lanes, [text(c, ("t", "r", "v")) for c in spread.coordinates]
    (2, 4, ['(r*128 + t)//2', 't%2*4 + v'])
    >>> [(text(c.value, ("t", "r", "v")), c.limit) for c in spread.inside]
    [('r*512 + t*4 + v', 800)]

A slot is `round * lanes + lane`; the lanes of a round are neighbours along one dimension. What
holds nothing (`inside`), and which of several copies acts for all (`first`), are conditions on
the thread and the round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tilelang.layout.digits import recognise
from tilelang.layout.expr import Const, Expr, Var, evaluate, text
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import unflatten
from tilelang.layout.lazy import np
from tilelang.layout.loops import loop_layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_LANES: Final = 16
THREAD, ROUND, LANE = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """`value < limit`; `low <= value` too where `low` is not 0."""

    value: Expr
    limit: int
    low: int = 0


# One of several ranges, or several conditions at once.
Ranges = tuple[Below, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The closed form of a fragment's inverse over (thread, round, lane).

    `inside` are conditions that all hold where there is an element. `first` says where a thread
    holds the first copy: any of its ranges; None where there is only one copy.
    `elements[thread, round, lane]` is the row-major number of the element, -1 where there is none.
    """

    layout: Fragment
    threads: int
    rounds: int
    lanes: int
    dim: int
    coordinates: tuple[Expr, ...]
    inside: tuple[Below, ...]
    first: Ranges | None
    elements: NDArray[np.int64]

    @staticmethod
    def of(layout: Fragment, threads: int, limit: int = MAX_LANES) -> Spread | None:
        """The spread of `layout` over a block of `threads`; None when it has no closed form."""
        return _spread(layout, threads, limit)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return self.layout.shape


@lru_cache(maxsize=256)
def _spread(layout: Fragment, threads: int, limit: int) -> Spread | None:
    if layout.thread_extent > threads:
        return None
    elements, copies = _inverse(layout, threads)
    lanes, dim = _lanes(elements, layout.shape, limit)
    shape = (threads, layout.slots // lanes, lanes)
    grid = elements.reshape(shape)
    form = _coordinates(grid, layout.shape)
    if form is None:
        return None
    coordinates, inside = form
    first = None
    if layout.replicas > 1:
        first = _first_copies(grid >= 0, copies.reshape(shape))
        if first is None:
            return None
    return Spread(layout, threads, shape[1], lanes, dim, coordinates, inside, first, grid)


def _inverse(layout: Fragment, threads: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Element and number of the copy in each (thread, slot), -1 where there is nothing."""
    places = layout.map.table.reshape(2, layout.size, layout.replicas)
    elements = np.full((threads, layout.slots), -1, dtype=np.int64)
    copies = np.full((threads, layout.slots), -1, dtype=np.int64)
    for copy in reversed(range(layout.replicas)):
        thread, slot = places[:, :, copy]
        elements[thread, slot] = np.arange(layout.size)
        copies[thread, slot] = copy
    return elements, copies


def _lanes(
    elements: NDArray[np.int64], shape: tuple[int, ...], limit: int
) -> tuple[int, int]:
    """How many neighbouring slots are always neighbouring elements, and along which dimension."""
    best, along = 1, len(shape) - 1
    slots = elements.shape[1]
    for dim in reversed(range(len(shape))):
        step = math.prod(shape[dim + 1 :])
        lanes = best * 2
        while lanes <= limit and slots % lanes == 0 and shape[dim] % lanes == 0:
            groups = elements.reshape(-1, lanes)
            first = groups[:, :1]
            run = first + np.arange(lanes) * step
            whole = (groups == run) | (groups < 0) & (first < 0)
            aligned = first // step % shape[dim] % lanes == 0
            if not whole.all() or not (aligned | (first < 0)).all():
                break
            best, along = lanes, dim
            lanes *= 2
    return best, along


def _coordinates(
    grid: NDArray[np.int64], shape: tuple[int, ...]
) -> tuple[tuple[Expr, ...], tuple[Below, ...]] | None:
    """Each coordinate over (thread, round, lane), and what holds where there is an element."""
    used = grid >= 0
    rows = int(np.nonzero(used.any(axis=(1, 2)))[0].max()) + 1
    names = tuple(Var(k, n) for k, n in enumerate(grid.shape))
    beyond = () if rows == grid.shape[0] else (Below(names[THREAD], rows),)
    if used[:rows].all():
        coordinates = _closed(np.stack(np.unravel_index(grid[:rows], shape)))
        if coordinates is not None:
            return tuple(_over(c, names) for c in coordinates), beyond
    number = _extended(grid[:rows], math.prod(shape))
    if number is not None:
        values = tuple(unflatten(number, shape))
        return values, (*beyond, Below(number, math.prod(shape)))
    return _each_extended(grid[:rows], shape, beyond)


def _each_extended(
    grid: NDArray[np.int64], shape: tuple[int, ...], beyond: tuple[Below, ...]
) -> tuple[tuple[Expr, ...], tuple[Below, ...]] | None:
    """Coordinates that run over the edge of the tile, each by itself."""
    places = np.stack(np.unravel_index(np.maximum(grid, 0), shape))
    inside = np.ones(grid.shape, dtype=bool)
    coordinates, conditions = [], []
    for row, extent in zip(places, shape, strict=True):
        table = _additive(np.where(grid < 0, -1, row))
        if table is None:
            return None
        closed = _closed(table[None])
        if closed is None:
            return None
        coordinates.append(closed[0])
        inside &= table < extent
        if (table >= extent).any():
            conditions.append(Below(closed[0], extent))
    if not np.array_equal(inside, grid >= 0):
        return None
    return tuple(coordinates), (*beyond, *conditions)


def _extended(grid: NDArray[np.int64], size: int) -> Expr | None:
    """The number of an element, when it only runs over the end."""
    table = _additive(grid)
    if table is None or not np.array_equal(table < size, grid >= 0):
        return None
    closed = _closed(table[None])
    return None if closed is None else closed[0]


def _additive(values: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """`values`, -1 where unknown, continued as a sum of one function per dimension."""
    start = values[0, 0, 0]
    if start < 0:
        return None
    total: NDArray[np.int64] = np.full((1, 1, 1), start, dtype=np.int64)
    for line in (values[:, :1, :1], values[:1, :, :1], values[:1, :1, :]):
        if (line < 0).any():
            return None
        total = total + (line - start)
    return total if (total == values)[values >= 0].all() else None


def _closed(table: NDArray[np.int64]) -> tuple[Expr, ...] | None:
    found = recognise(table)
    return None if found is None else found.expressions()


def _over(expr: Expr, names: Sequence[Var]) -> Expr:
    """`expr` with the ranges of the whole block in its variables."""
    found: Expr = evaluate(expr, names)
    return found if isinstance(found, (Const, Var)) or found is not None else Const(0)


def _first_copies(used: NDArray[np.bool_], copies: NDArray[np.int64]) -> Ranges | None:
    """Where the first copy is held, when that depends on the thread alone."""
    acts = used & (copies == 0)
    thread = acts.any(axis=(1, 2))
    if not np.array_equal(acts, used & thread[:, None, None]):
        return None
    return thread_ranges(thread, used.any(axis=(1, 2)))


def thread_ranges(
    wanted: NDArray[np.bool_], matters: NDArray[np.bool_] | None = None
) -> Ranges:
    """Conditions of which one holds for exactly the `wanted` threads, of those that matter."""
    threads = len(wanted)
    matters = np.ones(threads, dtype=bool) if matters is None else matters
    numbers = np.arange(threads)
    thread = Var(THREAD, threads)
    if (wanted | ~matters).all():
        return (Below(Const(0), 1),)
    size = 1
    while size < threads:
        for unit in (1, size):
            extent = threads if unit == 1 else size
            period = size if unit == 1 else threads
            digit = numbers % period // unit if unit == 1 else numbers // unit
            chosen = digit == 0
            if np.array_equal(chosen & matters, wanted & matters):
                value: Any = thread % period if unit == 1 else thread // unit
                return (Below(value, 1),)
            del extent
        size *= 2
    for unit in _powers(threads):
        for period in _powers(threads // unit):
            if np.array_equal((numbers // unit % period == 0) & matters, wanted & matters):
                return (Below(thread // unit % period, 1),)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (wanted & matters).astype(int), [0]])))
    return tuple(
        Below(thread, int(stop), int(start))
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    )


def _powers(limit: int) -> list[int]:
    return [1 << k for k in range(max(1, limit).bit_length())]


__all__ = ["Below", "Ranges", "Spread", "loop_layout", "text", "thread_ranges"]
