"""Which element does a thread work on in each of its slots: a fragment seen from its threads.

    >>> spread = Spread.of(loop_layout((100, 8), threads=128, vector=4), threads=128)
    >>> spread.rounds, spread.lanes, [text(c, ("t", "r", "v")) for c in spread.coordinates]
    (2, 4, ['r*64 + t//2', 't%2*4 + v'])
    >>> [(text(c.value, ("t", "r", "v")), c.limit) for c in spread.inside]
    [('r*512 + t*4', 800)]

A slot is `round * lanes + lane`; the lanes of a round are neighbours along one dimension. What
holds nothing (`inside`), and which of several copies acts for all (`first`), are conditions on
the thread and the round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from tilelang.layout.digits import recognise
from tilelang.layout.expr import Expr, Var, as_expr, evaluate
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import unflatten
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_LANES: Final = 16
THREAD, ROUND, LANE = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """`low <= value < limit`, over (thread, round, lane); `value` is never negative."""

    value: Expr
    limit: int
    low: int = 0


# Alternatives, each of conditions that hold together.
AnyOf: TypeAlias = tuple[tuple[Below, ...], ...]
ALWAYS: Final[AnyOf] = ((),)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The closed form of a fragment's inverse over (thread, round, lane).

    `inside` are conditions that all hold where there is an element. `first` says which threads
    hold the first copy. `dim` is the dimension that the lanes run along.
    `elements[thread, round, lane]` is the row-major number of the element, -1 where there is none.
    """

    layout: Fragment
    threads: int
    rounds: int
    lanes: int
    dim: int
    coordinates: tuple[Expr, ...]
    inside: tuple[Below, ...]
    first: AnyOf
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
    grid, copy = elements.reshape(shape), copies.reshape(shape)
    form = _coordinates(grid[:, :, 0], layout.shape)
    if form is None:
        return None
    variables = tuple(Var(k, n) for k, n in enumerate(shape))
    coordinates = [_over(c, variables) for c in form[0]]
    if lanes > 1:
        coordinates[dim] = coordinates[dim] + variables[LANE]
    inside = tuple(Below(_over(b.value, variables), b.limit) for b in form[1])
    first = ALWAYS
    if layout.replicas > 1:
        acts: NDArray[np.bool_] = (copy == 0).any(axis=(1, 2))
        if not np.array_equal(copy == 0, (copy >= 0) & acts[:, None, None]):
            return None
        matters = np.asarray((copy >= 0).any(axis=(1, 2)))
        first = thread_ranges(acts, matters)
    return Spread(layout, threads, shape[1], lanes, dim, tuple(coordinates), inside, first, grid)


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


def _lanes(elements: NDArray[np.int64], shape: tuple[int, ...], limit: int) -> tuple[int, int]:
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
            empty = first < 0
            if not ((groups == run) | (groups < 0) & empty).all():
                break
            if not (empty | (first // step % shape[dim] % lanes == 0)).all():
                break
            best, along = lanes, dim
            lanes *= 2
    return best, along


_Form: TypeAlias = "tuple[tuple[Expr, ...], tuple[Below, ...]]"


def _coordinates(grid: NDArray[np.int64], shape: tuple[int, ...]) -> _Form | None:
    """Each coordinate over (thread, round), and what holds where there is an element."""
    used = grid >= 0
    rows = int(np.flatnonzero(used.any(axis=1)).max()) + 1
    beyond = () if rows == len(grid) else (Below(Var(THREAD, len(grid)), rows),)
    if used[:rows].all():
        closed = _closed(np.stack(unflatten(grid[:rows], shape)))
        if closed is not None:
            return closed, beyond
    size = math.prod(shape)
    number = _continued(grid[:rows])
    if number is not None and np.array_equal(number < size, used[:rows]):
        closed = _closed(number[None])
        if closed is not None:
            return unflatten(closed[0], shape), (*beyond, Below(closed[0], size))
    return _each_continued(grid[:rows], shape, beyond)


def _each_continued(
    grid: NDArray[np.int64], shape: tuple[int, ...], beyond: tuple[Below, ...]
) -> _Form | None:
    """Coordinates that run over the edge of the tile, each by itself."""
    places = np.stack(unflatten(np.maximum(grid, 0), shape))
    inside = np.ones(grid.shape, dtype=bool)
    coordinates: list[Expr] = []
    conditions: list[Below] = []
    for row, extent in zip(places, shape, strict=True):
        table = _continued(np.where(grid < 0, -1, row))
        closed = None if table is None else _closed(table[None])
        if table is None or closed is None:
            return None
        coordinates.append(closed[0])
        inside &= table < extent
        if (table >= extent).any():
            conditions.append(Below(closed[0], extent))
    if not np.array_equal(inside, grid >= 0):
        return None
    return tuple(coordinates), (*beyond, *conditions)


def _continued(values: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """`values`, -1 where unknown, continued as a function of the thread plus one of the round."""
    column, row = values[:, :1], values[:1, :]
    if (column < 0).any() or (row < 0).any():
        return None
    total: NDArray[np.int64] = column + row - values[0, 0]
    return total if (total == values)[values >= 0].all() else None


def _closed(table: NDArray[np.int64]) -> tuple[Expr, ...] | None:
    found = recognise(table)
    return None if found is None else found.expressions()


def _over(expr: Expr, variables: tuple[Var, ...]) -> Expr:
    """`expr` where the variables have the ranges of the whole block."""
    return as_expr(evaluate(expr, variables))


def thread_ranges(wanted: NDArray[np.bool_], matters: NDArray[np.bool_] | None = None) -> AnyOf:
    """What holds for exactly the `wanted` threads among those that matter."""
    threads = len(wanted)
    matters = np.ones(threads, dtype=bool) if matters is None else matters
    thread = Var(THREAD, threads)
    if (wanted | ~matters).all():
        return ALWAYS
    numbers = np.arange(threads)
    for unit in _divisors(threads):
        if np.array_equal((numbers // unit == 0) & matters, wanted & matters):
            return ((Below(thread, unit),),)
    fields = _clear_fields(wanted, matters)
    if fields is not None:
        return (tuple(Below(thread // low % extent, 1) for low, extent in fields),)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (wanted & matters).astype(int), [0]])))
    return tuple(
        (Below(thread, int(stop), int(start)),)
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    )


def _clear_fields(
    wanted: NDArray[np.bool_], matters: NDArray[np.bool_]
) -> list[tuple[int, int]] | None:
    """The bits that are 0 in exactly the wanted threads, as (lowest bit, extent) of runs."""
    numbers = np.arange(len(wanted))
    fields: list[tuple[int, int]] = []
    mask = 0
    for bit in range((len(wanted) - 1).bit_length()):
        if (wanted & matters & (numbers >> bit & 1 == 1)).any():
            continue
        mask |= 1 << bit
        if fields and fields[-1][0] * fields[-1][1] == 1 << bit:
            fields[-1] = fields[-1][0], fields[-1][1] * 2
        else:
            fields.append((1 << bit, 2))
    if fields and np.array_equal((numbers & mask == 0) & matters, wanted & matters):
        return fields
    return None


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number) if number % n == 0]
