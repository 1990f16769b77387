"""Which thread holds an element, and in which of its registers: `Fragment`.

    >>> rows = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))    # an mma accumulator
    >>> rows.owners(3, 5)
    ((14, 1),)
    >>> rows.elements(14)
    ((3, 4), (3, 5))
    >>> total = rows.reduce(1)       # the sum of a row is known to all threads of that row
    >>> total.replicas, total.owners(3)
    (4, ((12, 0), (13, 0), (14, 0), (15, 0)))

An element may be held by several threads (`replicas`). Places of the thread x register grid that
hold nothing are the padding of a tile that the threads do not divide; code must guard them.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelang.layout.digits import Digit, DigitMap, Output
from tilelang.layout.index_map import IndexMap, checked_shape, linear_index, unflatten
from tilelang.layout.layout import SHORT, Layout, aligned_run, index_names
from tilelang.layout.lazy import np
from tilelang.layout.ownership import distinct_owners, rank_in_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Fragment:
    """(index, replica) to (thread, register slot).

    Either `forward_fn(*index[, rep]) -> (thread, slot)`, or `forward_thread_fn(*index[, rep])`
    with `forward_index_fn(*index)`; without the latter each thread numbers its elements in
    row-major order. `rep` runs over `range(replicate)`.
    """

    map: IndexMap
    shape: tuple[int, ...]
    thread_extent: int
    slots: int

    def __init__(
        self,
        shape: Any,
        forward_fn: Callable[..., Any] | None = None,
        forward_thread_fn: Callable[..., Any] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., Any] | None = None,
    ) -> None:
        extents = checked_shape(shape)
        domain = (*extents, *checked_shape(replicate))
        if (forward_fn is None) == (forward_thread_fn is None):
            raise ValueError("a fragment needs either forward_fn or forward_thread_fn")
        if forward_fn is not None:
            index_map = _pairs(domain, _with_replica(forward_fn, len(extents)))
        else:
            assert forward_thread_fn is not None
            thread = _with_replica(forward_thread_fn, len(extents))
            if forward_index_fn is None:
                rows = IndexMap.trace(domain, thread).table[0]
                table = np.stack([rows, rank_in_thread(rows.reshape(-1, domain[-1]), domain)])
                index_map = IndexMap.of_table(table)
            else:
                slot = _with_replica(forward_index_fn, len(extents))
                index_map = _pairs(domain, lambda *x: (thread(*x), slot(*x)))
        self._fill(index_map)

    def _fill(self, index_map: IndexMap) -> None:
        flat = index_map.table.reshape(2, -1)
        lowest, highest = flat.min(axis=1), flat.max(axis=1)
        if lowest.min() < 0:
            raise ValueError(f"threads and slots count from 0 up, got {int(lowest.min())}")
        object.__setattr__(self, "map", index_map)
        object.__setattr__(self, "shape", index_map.shape[:-1])
        object.__setattr__(self, "thread_extent", int(highest[0]) + 1)
        object.__setattr__(self, "slots", int(highest[1]) + 1)

    @classmethod
    def of_map(cls, index_map: IndexMap) -> Fragment:
        """The fragment of a map from (index, replica) to (thread, slot)."""
        self = cls.__new__(cls)
        self._fill(index_map)
        return self

    @classmethod
    def from_digits(
        cls,
        shape: Sequence[int],
        thread: Sequence[Digit],
        slot: Sequence[Digit],
        replicate: int = 1,
    ) -> Fragment:
        """The fragment of a digit form; the replica is the dimension after the last."""
        domain = (*checked_shape(shape), replicate)
        outputs = (Output(tuple(thread)), Output(tuple(slot)))
        return cls.of_map(IndexMap.of_digits(DigitMap(domain, outputs)))

    @classmethod
    def of_owners(cls, shape: Sequence[int], rows: NDArray[np.int64]) -> Fragment:
        """The fragment whose element `e` (row-major) lives in the threads `rows[e]`; each thread
        numbers its elements in row-major order."""
        domain = (*shape, rows.shape[1])
        table = np.stack([rows.reshape(domain), rank_in_thread(rows, domain)])
        return cls.of_map(IndexMap.of_table(table))

    # -- questions -------------------------------------------------------------------------

    @property
    def replicas(self) -> int:
        """How many copies of each element there are."""
        return self.map.shape[-1]

    @property
    def size(self) -> int:
        """How many elements the tile has."""
        return math.prod(self.shape)

    def registers(self, bits: int) -> int:
        """32-bit registers a thread spends on the tile."""
        return -(-self.slots * bits // 32)

    def __call__(self, *index: Any) -> tuple[Any, Any]:
        """(thread, slot) of an element, of its first copy unless a replica follows the index."""
        if len(index) == len(self.shape):
            index = (*index, 0)
        thread, slot = self.map(*index)
        return thread, slot

    def thread(self, *index: Any, rep: Any = 0) -> Any:
        """The thread that holds copy `rep` of an element."""
        return self.map(*index, rep)[0]

    def slot(self, *index: Any, rep: Any = 0) -> Any:
        """The register slot of an element in the thread that holds copy `rep`."""
        return self.map(*index, rep)[1]

    def owners(self, *index: int) -> tuple[tuple[int, int], ...]:
        """All (thread, slot) pairs that hold an element, by thread."""
        thread, slot = (self.map.table[k][index].tolist() for k in (0, 1))
        return tuple(sorted(set(zip(thread, slot, strict=True))))

    def elements(self, thread: int) -> tuple[tuple[int, ...], ...]:
        """The elements a thread holds, by slot."""
        held = sorted(
            {
                (int(self.map.table[(1, *at)]), tuple(int(x) for x in at[:-1]))
                for at in np.argwhere(self.map.table[0] == thread)
            }
        )
        return tuple(index for _, index in held)

    def element(self, thread: int, slot: int) -> tuple[int, ...] | None:
        """The element in a slot of a thread, or None for padding."""
        hit = np.argwhere((self.map.table[0] == thread) & (self.map.table[1] == slot))
        return tuple(int(x) for x in hit[0][:-1]) if len(hit) else None

    @property
    def is_bijective(self) -> bool:
        """Whether (index, replica) and (thread, slot) correspond one to one, without padding."""
        places = self.thread_extent * self.slots
        return places == self.size * self.replicas and self.clash() is None and not self.holes()

    def clash(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two elements that share a slot of a thread, or None."""
        place = self.map.table[0] * self.slots + self.map.table[1]
        element = np.arange(self.size).reshape(*self.shape, 1)
        both = np.stack([place, np.broadcast_to(element, place.shape)]).reshape(2, -1)
        pairs = np.unique(both, axis=1)
        twice = np.nonzero(np.diff(pairs[0]) == 0)[0]
        if not len(twice):
            return None
        first, second = (int(pairs[1, twice[0] + k]) for k in (0, 1))
        return unflatten(first, self.shape), unflatten(second, self.shape)

    def holes(self, threads: int | None = None) -> int:
        """How many (thread, slot) places hold nothing, of `threads` threads: 0 needs no guard."""
        place = self.map.table[0] * self.slots + self.map.table[1]
        return max(threads or 0, self.thread_extent) * self.slots - len(np.unique(place))

    def vector_width(self, dim: int = -1, limit: int | None = None) -> int:
        """The widest group of neighbours along `dim` that one thread holds in aligned slots."""
        axis = operator.index(dim)
        if not -len(self.shape) <= axis < len(self.shape):
            raise ValueError(f"no dimension {dim} in a fragment of {self.shape}")
        # Aligned like a slot number, and with a gap after the last slot of a thread.
        pitch = 2 << (self.slots - 1).bit_length()
        places = self.map.table[0] * pitch + self.map.table[1]
        return aligned_run(np.moveaxis(places, axis % len(self.shape), -1), limit)

    # -- relations -------------------------------------------------------------------------

    def is_equal(self, other: Fragment) -> bool:
        """Whether both put every copy of every element in the same slot of the same thread."""
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fragment) and self.map.equals(other.map)

    def __hash__(self) -> int:
        return self.map.fingerprint()

    def owner_rows(self) -> NDArray[np.int64]:
        """The threads that hold each element: `[element in row-major order, replica]`."""
        rows: NDArray[np.int64] = self.map.table[0].reshape(self.size, self.replicas)
        return rows

    def inverse(self) -> Layout:
        """(thread, slot) to (*index, replica). The fragment must have no padding."""
        if not self.is_bijective:
            raise ValueError(f"not invertible: {self} does not fill its threads one to one")
        outer = Layout(self.map.shape, self.map, out_shape=(self.thread_extent, self.slots))
        return outer.inverse()

    # -- algebra ---------------------------------------------------------------------------

    def repeat(
        self, repeats: Sequence[int], repeat_on_thread: bool = False, lower_dim_first: bool = True
    ) -> Fragment:
        """A larger tile of `repeats` copies, in more threads or else in more slots of the same.

        With `lower_dim_first` the copies are numbered along the last dimension first.
        """
        counts = checked_shape(tuple(repeats))
        if len(counts) != len(self.shape):
            raise ValueError(f"a fragment of {self.shape} needs as many repeats, got {counts}")
        tile = self.shape
        shape = tuple(n * count for n, count in zip(tile, counts, strict=True))

        def fn(*x: Any) -> tuple[Any, Any]:
            thread, slot = self.map(*(v % n for v, n in zip(x, tile, strict=False)), x[-1])
            block = [v // n for v, n in zip(x, tile, strict=False)]
            copy = (
                linear_index(block, counts)
                if lower_dim_first
                else linear_index(block[::-1], counts[::-1])
            )
            if repeat_on_thread:
                return thread + copy * self.thread_extent, slot
            return thread, slot + copy * self.slots

        return Fragment.of_map(IndexMap.trace((*shape, self.replicas), fn))

    def replicate(self, replicate: int) -> Fragment:
        """The same tile held again by further groups of threads."""
        (count,) = checked_shape(replicate)

        def fn(*x: Any) -> tuple[Any, Any]:
            thread, slot = self.map(*x[:-1], x[-1] % self.replicas)
            return thread + x[-1] // self.replicas * self.thread_extent, slot

        return Fragment.of_map(IndexMap.trace((*self.shape, self.replicas * count), fn))

    def condense_rep_var(self) -> Fragment:
        """The same owners, each named once: drops replicas that repeat a thread."""
        rows = distinct_owners(self.owner_rows())
        if rows.shape[1] == self.replicas:
            return self
        slots = self.map.table[1].reshape(self.size, self.replicas)
        at = (self.owner_rows()[:, None, :] == rows[:, :, None]).argmax(axis=2)
        table = np.stack([rows, np.take_along_axis(slots, at, axis=1)])
        return Fragment.of_map(IndexMap.of_table(table.reshape(2, *self.shape, rows.shape[1])))

    def permute(self, dims: Sequence[int]) -> Fragment:
        """The transposed tile: dimension `d` of the result is `dims[d]` of this one."""
        order = tuple(operator.index(d) for d in dims)
        if sorted(order) != list(range(len(self.shape))):
            raise ValueError(f"{order} is no permutation of the dimensions of {self.shape}")

        def fn(*x: Any) -> tuple[Any, Any]:
            back = [x[order.index(d)] for d in range(len(order))]
            thread, slot = self.map(*back, x[-1])
            return thread, slot

        domain = (*(self.shape[d] for d in order), self.replicas)
        return Fragment.of_map(IndexMap.trace(domain, fn))

    def reduce(self, dim: int, keepdim: bool = False) -> Fragment:
        """Where the result of a reduction over `dim` lives: in every thread that took part."""
        axis = operator.index(dim)
        if not -len(self.shape) <= axis < len(self.shape):
            raise ValueError(f"no dimension {dim} in a fragment of {self.shape}")
        axis %= len(self.shape)
        kept = tuple(n for d, n in enumerate(self.shape) if d != axis)
        rows = np.moveaxis(self.map.table[0], axis, -2).reshape(math.prod(kept), -1)
        whole = tuple(1 if d == axis else n for d, n in enumerate(self.shape))
        shape = whole if keepdim or not kept else kept
        return Fragment.of_owners(shape, distinct_owners(rows))

    # -- text ------------------------------------------------------------------------------

    def formula(self, names: Sequence[str] | None = None) -> str:
        """Python source of `(thread, slot)` over the index names and the replica's, the last."""
        parts = self.map.formula(names or (*index_names(len(self.shape)), "rep"))
        return f"({', '.join(parts)})"

    def __str__(self) -> str:
        if self.map.forms is not None:
            thread, slot = self.map.formula((*index_names(len(self.shape)), "rep"))
            for body in (
                f"thread={thread}, slot={slot}",
                f"thread={thread}",
                f"t={thread}",
            ):
                if len(body) <= SHORT:
                    return body
        copies = f" x{self.replicas}" if self.replicas > 1 else ""
        tile = "x".join(map(str, self.shape))
        return f"{tile}{copies} on {self.thread_extent} threads, {self.slots} each"

    def __repr__(self) -> str:
        return f"Fragment({self.shape}, {self}, replicate={self.replicas})"


def _pairs(domain: tuple[int, ...], fn: Callable[..., Any]) -> IndexMap:
    """Trace a function to (thread, slot); a slot of several indices is flattened row-major."""

    def flat(*x: Any) -> tuple[Any, ...]:
        result = fn(*x)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ValueError(f"forward_fn returns (thread, slot), got {result!r}")
        thread, slot = result
        return (thread, *slot) if isinstance(slot, (tuple, list)) else (thread, slot)

    index_map = IndexMap.trace(domain, flat)
    if index_map.outputs == 2:
        return index_map
    extents = (index_map.table[1:].reshape(index_map.outputs - 1, -1).max(1) + 1).tolist()

    def joined(*x: Any) -> tuple[Any, Any]:
        thread, *slots = index_map(*x)
        return thread, linear_index(slots, extents)

    return IndexMap.trace(domain, joined)


def _with_replica(fn: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """`fn` as a function of the index and the replica, whether or not it takes the latter."""
    try:
        inspect.signature(fn).bind(*range(rank + 1))
    except TypeError:
        return lambda *x: fn(*x[:-1])
    except ValueError:  # a builtin without a signature
        return lambda *x: fn(*x[:-1])
    return fn
