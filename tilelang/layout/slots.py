"""In which register slot does a thread find the elements it works on?

    held = slots_of(accumulator, threads, elements)     # -1 where the thread does not hold it
    closed_slots(held)                                  # over (thread, the other axes)

A closed form that does not depend on the thread names registers; one that does needs memory that
can be indexed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from tilelang.layout.digits import recognise
from tilelang.layout.expr import Expr, Var, evaluate
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import IndexMap
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def slots_of(layout: Fragment, elements: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slot in which thread `t` holds the element `elements[t, …]`, -1 where it does not.

    Elements are row-major numbers; -1 stands for none.
    """
    keys, slots = _held(layout)
    threads = np.arange(elements.shape[0]).reshape(-1, *(1 for _ in elements.shape[1:]))
    wanted = threads * layout.size + elements
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = (keys[at] == wanted) & (elements >= 0)
    return np.where(found, slots[at], -1)


def owners_reached(layout: Fragment, elements: NDArray[np.int64]) -> bool:
    """Whether every thread that holds an element which some thread works on, `elements[t, …]`
    (-1: none), is one of those that work on it."""
    keys, _ = _held(layout)
    threads = np.arange(elements.shape[0]).reshape(-1, *(1 for _ in elements.shape[1:]))
    touched = elements >= 0
    reached = np.unique((threads * layout.size + elements)[touched])
    wanted = keys[np.isin(keys % layout.size, np.unique(elements[touched]))]
    return bool(np.isin(wanted, reached).all())


def closed_slots(table: NDArray[np.int64]) -> Expr | None:
    """The slots `table[t, …]` in closed form over one variable per axis; -1 is anything.

    None when there is no closed form.
    """
    names = [Var(k, n) for k, n in enumerate(table.shape)]
    common = table.max(axis=0)
    if ((table == common) | (table < 0)).all():
        filled = _continued(common)
        closed = None if filled is None else recognise(filled[None])
        if closed is not None:
            found: Expr = evaluate(closed.expressions()[0], names[1:])
            return found
    if (table < 0).any():
        return None
    closed = recognise(table[None])
    return None if closed is None else closed.expressions()[0]


def seen_as(layout: Fragment, bits: int, other: int, shape: tuple[int, ...]) -> Fragment | None:
    """A tile of elements of `bits`, seen as `shape` elements of `other` bits in the same registers;
    None where an element would be put together from registers that lie apart."""
    places = layout.map.table.reshape(2, layout.size, layout.replicas)
    if other >= bits:
        count = other // bits
        if layout.size % count:
            return None
        groups = places.reshape(2, -1, count, layout.replicas)
        first = groups[:, :, :1]
        steps = np.arange(count).reshape(1, count, 1)
        apart = (groups[0] != first[0]).any() or (groups[1] != first[1] + steps).any()
        if apart or (first[1] % count).any():
            return None
        table = np.stack([first[0, :, 0], first[1, :, 0] // count])
    else:
        count = bits // other
        steps = np.arange(count).reshape(1, count, 1)
        thread = np.repeat(places[0][:, None], count, axis=1)
        table = np.stack([thread, places[1][:, None] * count + steps])
    if table[0].size != math.prod(shape) * layout.replicas:
        return None
    return Fragment.of_map(IndexMap.of_table(table.reshape(2, *shape, layout.replicas)))


def depends_on(expr: Expr, position: int) -> bool:
    """Whether an expression mentions a variable."""
    if isinstance(expr, Var):
        return expr.position == position
    sides = [getattr(expr, name, None) for name in ("lhs", "rhs")]
    return any(depends_on(side, position) for side in sides if side is not None)


@lru_cache(maxsize=256)
def _held(layout: Fragment) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted keys `thread * size + element`, and the slot of each."""
    places = layout.map.table.reshape(2, layout.size, layout.replicas)
    keys = (places[0] * layout.size + np.arange(layout.size)[:, None]).ravel()
    order = np.argsort(keys, kind="stable")
    return keys[order], places[1].ravel()[order]


def _continued(table: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """`table` with its unknown entries filled by a sum of one function per axis."""
    if (table >= 0).all():
        return table
    rank = table.ndim
    if table.size == 0 or table[(0,) * rank] < 0:
        return None
    start = table[(0,) * rank]
    total: NDArray[np.int64] = np.full((1,) * rank, start, dtype=np.int64)
    for axis in range(rank):
        line = table[tuple(slice(None) if d == axis else slice(0, 1) for d in range(rank))]
        if (line < 0).any():
            return None
        total = total + (line - start)
    return total if ((total == table) | (table < 0)).all() else None
