"""Where an element lies in memory: `Layout`, an index map whose outputs are physical indices.

    >>> swizzled = Layout((32, 32), lambda i, j: (i, j ^ i))
    >>> swizzled(3, 5)
    (3, 6)
    >>> swizzled.offset(3, 5)            # row-major position in the physical shape
    102
    >>> str(swizzled)
    '(i, j ^ i)'

A layout is a value: two of them are equal when they map the same domain the same way, however
they were written.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelang.layout.digits import Digit, DigitMap, Output, Xor
from tilelang.layout.expr import text
from tilelang.layout.index_map import IndexMap, checked_shape, linear_index, unflatten
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# VS Code cuts an inlay hint at 43 characters; a short form aims to stay below.
SHORT = 43

_NAMES = ("i", "j", "k", "l", "m", "n")


def index_names(rank: int) -> tuple[str, ...]:
    """What the indices of a `rank`-dimensional map are called in print."""
    return _NAMES[:rank] if rank <= len(_NAMES) else tuple(f"i{k}" for k in range(rank))


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Layout:
    """Logical index to physical index.

    `shape` is the domain. `forward_fn(*index)` returns one offset, or a tuple or list of physical
    indices; its body may use `+ - * // % ^`. The physical extents are the largest values plus
    one, and `offset` is the row-major position among them.
    """

    map: IndexMap
    out_shape: tuple[int, ...]
    _injective: bool | None = field(repr=False)

    def __init__(
        self,
        shape: Any,
        forward_fn: Callable[..., Any] | IndexMap,
        *,
        out_shape: Sequence[int] | None = None,
    ) -> None:
        if isinstance(forward_fn, IndexMap):
            index_map = forward_fn
        elif callable(forward_fn):
            index_map = IndexMap.trace(checked_shape(shape), forward_fn)
        else:
            raise TypeError(f"a layout needs a function of its indices, got {forward_fn!r}")
        object.__setattr__(self, "map", index_map)
        object.__setattr__(self, "out_shape", _physical_shape(index_map, out_shape))
        object.__setattr__(self, "_injective", None)

    @classmethod
    def from_digits(
        cls,
        shape: Sequence[int],
        *outputs: Sequence[Digit],
        xors: Sequence[Xor] = (),
        out_shape: Sequence[int] | None = None,
    ) -> Layout:
        """The layout of a digit form: for each output its digits, then the xor fields."""
        rows = tuple(Output(tuple(digits)) for digits in outputs)
        digits = DigitMap(checked_shape(shape), rows, tuple(xors))
        return cls(digits.shape, IndexMap.of_digits(digits), out_shape=out_shape)

    @classmethod
    def from_table(cls, table: NDArray[np.int64]) -> Layout:
        """The layout with the physical indices `table[output, *index]`."""
        index_map = IndexMap.of_table(table)
        return cls(index_map.shape, index_map)

    @classmethod
    def row_major(cls, shape: Any) -> Layout:
        """Last index fastest."""
        extents = checked_shape(shape)
        return cls(extents, lambda *index: linear_index(index, extents))

    @classmethod
    def strided(cls, shape: Any, strides: Sequence[int]) -> Layout:
        """The sum of index times stride."""
        extents = checked_shape(shape)
        if len(strides) != len(extents):
            raise ValueError(f"{len(extents)} extents need as many strides, got {tuple(strides)}")
        return cls(extents, lambda *index: sum(i * s for i, s in zip(index, strides, strict=True)))

    # -- evaluation ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical extents."""
        return self.map.shape

    @property
    def size(self) -> int:
        """How many elements the domain has."""
        return math.prod(self.shape)

    @property
    def storage(self) -> int:
        """How many elements the physical shape holds, padding included."""
        return math.prod(self.out_shape)

    def __call__(self, *index: Any) -> Any:
        """The physical index (a tuple when there are several) at a logical one."""
        result = self.map(*index)
        return result[0] if len(result) == 1 else result

    def map_forward_index(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """The physical index at a logical one, always as a tuple."""
        return self.map(*index)

    def offset(self, *index: Any) -> Any:
        """The linear physical position of an element."""
        return linear_index(self.map(*index), self.out_shape)

    def offsets(self) -> NDArray[np.int64]:
        """The linear physical position of every element, `[*shape]`."""
        table: NDArray[np.int64] = linear_index(list(self.map.table), self.out_shape)
        return table

    def get_input_shape(self) -> tuple[int, ...]:
        """The logical extents."""
        return self.shape

    def get_output_shape(self) -> tuple[int, ...]:
        """The physical extents."""
        return self.out_shape

    # -- properties ------------------------------------------------------------------------

    @property
    def is_bijective(self) -> bool:
        """Whether every physical place holds exactly one element."""
        return self.storage == self.size and self.is_injective

    @property
    def is_injective(self) -> bool:
        """Whether no two elements share a place."""
        if self._injective is None:
            distinct = np.bincount(self.offsets().ravel(), minlength=1).max() == 1
            object.__setattr__(self, "_injective", bool(distinct))
        return bool(self._injective)

    def collision(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two elements that share a place, or None."""
        if self.is_injective:
            return None
        flat = self.offsets().ravel()
        order = np.argsort(flat, kind="stable")
        same = np.nonzero(np.diff(flat[order]) == 0)[0][0]
        first, second = (int(order[same + k]) for k in (0, 1))
        return unflatten(first, self.shape), unflatten(second, self.shape)

    def vector_width(self, dim: int = -1, limit: int | None = None) -> int:
        """The widest aligned vector along `dim`: a power of two that divides the extent, such
        that every group of that many neighbours is contiguous and starts at a multiple of it."""
        axis = operator.index(dim)
        if not -len(self.shape) <= axis < len(self.shape):
            raise ValueError(f"no dimension {dim} in a layout of {self.shape}")
        return aligned_run(np.moveaxis(self.offsets(), axis, -1), limit)

    def is_equal(self, other: Layout) -> bool:
        """Whether both map the same domain the same way."""
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.map.equals(other.map)

    def __hash__(self) -> int:
        return self.map.fingerprint()

    # -- algebra ---------------------------------------------------------------------------

    def inverse(self) -> Layout:
        """Physical index to logical index. Every place must hold exactly one element."""
        clash = self.collision()
        if clash is not None:
            raise ValueError(f"not invertible: elements {clash[0]} and {clash[1]} share a place")
        if self.storage != self.size:
            raise ValueError(
                f"not invertible: {self.size} elements leave holes in {self.storage} places"
            )
        order = np.empty(self.size, dtype=np.int64)
        order[self.offsets().ravel()] = np.arange(self.size)
        table = np.stack(unflatten(order, self.shape))
        index_map = IndexMap.of_table(table.reshape(len(self.shape), *self.out_shape))
        return Layout(self.out_shape, index_map, out_shape=self.shape)

    def compose(self, inner: Layout) -> Layout:
        """`self` after `inner`: the index `inner` gives is looked up in `self`."""
        if len(inner.out_shape) != len(self.shape):
            raise ValueError(f"cannot feed {len(inner.out_shape)} indices to {self.shape}")
        if any(a > b for a, b in zip(inner.out_shape, self.shape, strict=True)):
            raise ValueError(f"indices up to {inner.out_shape} do not fit {self.shape}")
        return Layout(inner.shape, lambda *x: self.map(*inner.map(*x)), out_shape=self.out_shape)

    def product(self, outer: Layout) -> Layout:
        """This tile laid out as `outer` says, one whole tile after another (one offset)."""
        if len(outer.shape) != len(self.shape):
            raise ValueError(f"a product needs equal ranks, got {self.shape} and {outer.shape}")
        tile = self.shape
        shape = tuple(a * b for a, b in zip(tile, outer.shape, strict=True))

        def offset(*x: Any) -> Any:
            inside = self.offset(*(v % n for v, n in zip(x, tile, strict=True)))
            which = outer.offset(*(v // n for v, n in zip(x, tile, strict=True)))
            return which * self.storage + inside

        return Layout(shape, offset, out_shape=(self.storage * outer.storage,))

    def repeat(self, dim: int, factor: int) -> Layout:
        """`factor` copies side by side along `dim`; the copy becomes the leading physical index."""
        axis, count = operator.index(dim), operator.index(factor)
        if not -len(self.shape) <= axis < len(self.shape):
            raise ValueError(f"no dimension {dim} in a layout of {self.shape}")
        if count < 1:
            raise ValueError(f"a layout is repeated at least once, got {factor}")
        axis %= len(self.shape)
        extent = self.shape[axis]
        shape = tuple(n * count if d == axis else n for d, n in enumerate(self.shape))

        def fn(*x: Any) -> tuple[Any, ...]:
            inner = tuple(v % extent if d == axis else v for d, v in enumerate(x))
            return (x[axis] // extent, *self.map(*inner))

        return Layout(shape, fn, out_shape=(count, *self.out_shape))

    def expand(self, leading: Any) -> Layout:
        """New leading dimensions, kept as leading physical indices."""
        extra = checked_shape(leading)

        def fn(*x: Any) -> tuple[Any, ...]:
            return (*x[: len(extra)], *self.map(*x[len(extra) :]))

        return Layout((*extra, *self.shape), fn, out_shape=(*extra, *self.out_shape))

    def reshape(self, shape: Any) -> Layout:
        """The same places seen through another shape of as many elements (row-major order)."""
        extents = checked_shape(shape)
        if math.prod(extents) != self.size:
            raise ValueError(f"cannot reshape {self.shape} to {extents}: the sizes differ")

        def fn(*x: Any) -> tuple[Any, ...]:
            return self.map(*unflatten(linear_index(x, extents), self.shape))

        return Layout(extents, fn, out_shape=self.out_shape)

    # -- text ------------------------------------------------------------------------------

    def formula(self, names: Sequence[str] | None = None) -> str:
        """Python source over `names` that evaluates to what calling the layout gives."""
        parts = self.map.formula(names or index_names(len(self.shape)))
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def __str__(self) -> str:
        names = index_names(len(self.shape))
        if len(self.shape) > 1 and len(self.out_shape) == 1:
            if self == Layout.row_major(self.shape):
                return f"row-major {_times(self.shape)}"
            if self == _column_major(self.shape):
                return f"column-major {_times(self.shape)}"
        forms = self.map.forms
        if forms is not None:
            parts = [text(form, names) for form in forms]
            body = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
            if len(body) <= SHORT:
                return body
        kind = "permuted" if self.is_bijective else "padded" if self.is_injective else "overlapping"
        return f"{kind} {_times(self.shape)}, {self.vector_width()} wide"

    def __repr__(self) -> str:
        return f"Layout({self.shape}, {self})"


def aligned_run(offsets: NDArray[np.int64], limit: int | None = None) -> int:
    """The widest power of two such that aligned groups along the last axis are aligned runs."""
    extent, width = offsets.shape[-1], 1
    while extent % (width * 2) == 0 and (limit is None or width * 2 <= limit):
        groups = offsets.reshape(*offsets.shape[:-1], -1, width * 2)
        first = groups[..., :1]
        if np.any(first % (width * 2)) or np.any(groups != first + np.arange(width * 2)):
            break
        width *= 2
    return width


def _physical_shape(index_map: IndexMap, given: Sequence[int] | None) -> tuple[int, ...]:
    """Largest values plus one, or the larger extents given; negative indices are refused."""
    flat = index_map.table.reshape(index_map.outputs, -1)
    ranges = list(zip(flat.min(axis=1).tolist(), flat.max(axis=1).tolist(), strict=True))
    lowest = min((low for low, _ in ranges), default=0)
    if lowest < 0:
        raise ValueError(f"a layout gives physical indices from 0 up, this one gives {lowest}")
    needed = tuple(high + 1 for _, high in ranges)
    if given is None:
        return needed
    extents = tuple(given)
    if len(extents) != len(needed) or any(a < b for a, b in zip(extents, needed, strict=True)):
        raise ValueError(f"the physical shape {extents} does not hold indices up to {needed}")
    return extents


def _column_major(shape: tuple[int, ...]) -> Layout:
    return Layout(shape, lambda *index: linear_index(index[::-1], shape[::-1]))


def _times(shape: Sequence[int]) -> str:
    return "x".join(str(extent) for extent in shape)
