"""Who holds what: tables of owners, `rows[element, copy] -> thread`, and their comparison.

The copies of an element are a set of threads; a row may name a thread twice to fill up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def distinct_owners(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row's threads once, ascending; shorter rows repeat their first thread."""
    ordered = np.sort(rows, axis=1)
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    counts = new.sum(axis=1)
    result: NDArray[np.int64] = np.repeat(ordered[:, :1], int(counts.max()), axis=1)
    column = np.cumsum(new, axis=1) - 1
    row = np.broadcast_to(np.arange(len(rows))[:, None], ordered.shape)
    result[row[new], column[new]] = ordered[new]
    return result


def rank_in_thread(rows: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """A slot for every (element, copy): its place among the elements of its thread."""
    size = len(rows)
    keys = (rows * size + np.arange(size)[:, None]).ravel()
    held, inverse = np.unique(keys, return_inverse=True)
    thread = held // size
    first = np.searchsorted(thread, thread)
    slots: NDArray[np.int64] = (np.arange(len(held)) - first)[inverse]
    return slots.reshape(shape)


def contained(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each element, whether every thread of `inner` is among those of `outer`."""
    if inner.shape == outer.shape and np.array_equal(inner, outer):
        return np.ones(len(inner), dtype=bool)
    threads = int(max(inner.max(), outer.max())) + 1
    if inner.shape[1] * outer.shape[1] <= threads:
        found = (inner[:, :, None] == outer[:, None, :]).any(axis=2)
    else:
        member = np.zeros((len(outer), threads), dtype=bool)
        np.put_along_axis(member, outer, True, axis=1)
        found = np.take_along_axis(member, inner, axis=1)
    result: NDArray[np.bool_] = found.all(axis=1)
    return result
