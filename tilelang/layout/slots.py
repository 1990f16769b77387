"""In which register slot does a thread find the elements it works on?

    >>> held = slots_of(accumulator, threads, elements)     # -1 where the thread does not hold it
    >>> closed_slots(held)                                  # over (thread, the other axes)

A closed form that does not depend on the thread names registers; one that does needs memory that
can be indexed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tilelang.layout.digits import recognise
from tilelang.layout.expr import Expr, Var, evaluate
from tilelang.layout.fragment import Fragment
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
    """Whether every thread that holds one of `elements[t, …]` (-1: none) is a thread `t` of it."""
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
