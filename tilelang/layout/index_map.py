"""What an index map is: a function of indices with a known domain, evaluated many ways.

It is held as expressions when it was traced, as a table when it was computed, and in either case
knows its table and, if there is one, its digit form. `Layout` and `Fragment` are index maps with
a meaning for their outputs.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelang.layout.digits import DigitMap, recognise
from tilelang.layout.expr import Const, Expr, Var, as_expr, evaluate, same, text
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A table entry is 8 bytes: 16 million of them is far above any shared memory or register tile.
MAX_ENTRIES = 1 << 24


def checked_shape(shape: Any) -> tuple[int, ...]:
    """`shape` as a tuple of positive ints; an int counts as one dimension."""
    extents = shape if isinstance(shape, Sequence) and not isinstance(shape, str) else (shape,)
    try:
        result = tuple(operator.index(extent) for extent in extents)
    except TypeError:
        raise TypeError(f"layout extents must be integers, got {shape!r}") from None
    if any(extent < 1 for extent in result):
        raise ValueError(f"layout extents must be positive, got {result}")
    if math.prod(result) > MAX_ENTRIES:
        raise ValueError(f"a layout of {result} is larger than {MAX_ENTRIES} elements")
    return result


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap:
    """`outputs` numbers for every index of `shape`; made by `trace`, `of_table` or `of_digits`."""

    shape: tuple[int, ...]
    outputs: int
    _forms: tuple[Expr, ...] | None
    _table: NDArray[np.int64] | None = field(default=None, repr=False)
    _digits: DigitMap | bool | None = field(default=False, repr=False)  # False: not looked for yet
    _simplest: tuple[Expr, ...] | None = field(default=None, repr=False)

    @classmethod
    def trace(cls, shape: tuple[int, ...], fn: Callable[..., Any]) -> IndexMap:
        """The map `fn(*index)`; one that cannot be traced is called for every index."""
        try:
            traced = fn(*(Var(k, n) for k, n in enumerate(shape)))
            forms = tuple(as_expr(value) for value in _as_tuple(traced))
        except (TypeError, AttributeError):
            return cls._tabulate(shape, fn)
        return cls(shape, len(forms), forms)

    @classmethod
    def of_digits(cls, digits: DigitMap) -> IndexMap:
        """The map of a digit form."""
        return cls(digits.shape, len(digits.outputs), digits.expressions())

    @classmethod
    def of_table(cls, table: NDArray[np.int64]) -> IndexMap:
        """The map with the values `table[output, *index]`."""
        frozen = np.ascontiguousarray(table, dtype=np.int64)
        frozen.setflags(write=False)
        return cls(tuple(frozen.shape[1:]), len(frozen), None, frozen)

    @classmethod
    def _tabulate(cls, shape: tuple[int, ...], fn: Callable[..., Any]) -> IndexMap:
        rows = []
        for index in itertools.product(*(range(n) for n in shape)):
            rows.append([_as_int(value) for value in _as_tuple(fn(*index))])
        table = np.array(rows, dtype=np.int64)
        return cls.of_table(table.T.reshape(table.shape[1], *shape))

    @property
    def table(self) -> NDArray[np.int64]:
        """All values, `[output, *index]`, read only."""
        if self._table is None:
            assert self._forms is not None
            grids = [
                np.arange(n, dtype=np.int64).reshape(
                    [-1 if d == k else 1 for d in range(len(self.shape))]
                )
                for k, n in enumerate(self.shape)
            ]
            table = np.empty((self.outputs, *self.shape), dtype=np.int64)
            for row, form in zip(table, self._forms, strict=True):
                row[...] = evaluate(form, grids)
            table.setflags(write=False)
            object.__setattr__(self, "_table", table)
        assert self._table is not None
        return self._table

    @property
    def digits(self) -> DigitMap | None:
        """The closed digit form, or None."""
        if isinstance(self._digits, bool):
            object.__setattr__(self, "_digits", recognise(self.table))
        assert not isinstance(self._digits, bool)
        return self._digits

    @property
    def forms(self) -> tuple[Expr, ...] | None:
        """The simplest known expression of each output, or None for a bare table."""
        if self._simplest is None:
            simplest = self._forms if self.digits is None else self.digits.expressions()
            object.__setattr__(self, "_simplest", simplest)
        return self._simplest

    def __call__(self, *index: Any) -> tuple[Any, ...]:
        """The outputs at `index`: ints, arrays (vectorised) or symbolic expressions."""
        if len(index) != len(self.shape):
            raise ValueError(f"expected {len(self.shape)} indices, got {len(index)}")
        if self._forms is not None:
            return tuple(evaluate(form, index) for form in self._forms)
        if all(isinstance(value, int) for value in index):
            return tuple(int(value) for value in self.table[(slice(None), *index)])
        if all(isinstance(value, (int, np.integer, np.ndarray)) for value in index):
            return tuple(self.table[(slice(None), *index)])
        forms = self.forms
        if forms is None:
            raise TypeError("this map is a table without a closed form: it needs concrete indices")
        return tuple(evaluate(form, index) for form in forms)

    def formula(self, names: Sequence[str], written: bool = False) -> tuple[str, ...]:
        """Python source of each output over `names`; it evaluates to what the map gives.

        `written`: as the map was made, which is how it puts symbolic indices together.
        """
        if len(names) != len(self.shape):
            raise ValueError(f"expected {len(self.shape)} names, got {len(names)}")
        forms = self._forms if written and self._forms is not None else self.forms
        if forms is not None:
            return tuple(text(form, names) for form in forms)
        where = text(linear_index([Var(k, n) for k, n in enumerate(self.shape)], self.shape), names)
        return tuple(f"{tuple(row.ravel().tolist())}[{where}]" for row in self.table)

    def equals(self, other: IndexMap) -> bool:
        """Whether both give the same values on the same domain."""
        if self is other:
            return True
        if (self.shape, self.outputs) != (other.shape, other.outputs):
            return False
        mine, theirs = self._forms, other._forms
        if mine is not None and theirs is not None and all(map(same, mine, theirs)):
            return True
        return bool(np.array_equal(self.table, other.table))

    def fingerprint(self) -> int:
        """A hash that equal maps share: the domain and the values in a few places."""
        corners = (tuple(n - 1 for n in self.shape), tuple((n - 1) // 2 for n in self.shape))
        return hash((self.shape, *(self(*index) for index in corners)))


def linear_index(index: Sequence[Any], shape: Sequence[int]) -> Any:
    """Row-major position of `index` in `shape`."""
    position: Any = 0
    for value, extent in zip(index, shape, strict=True):
        position = position * extent + value
    return position


def unflatten(position: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """The index in `shape` at a row-major position."""
    index: list[Any] = []
    for extent in reversed(shape[1:]):
        index.append(position % extent)
        position = position // extent
    return (position, *reversed(index)) if shape else ()


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _as_int(value: Any) -> int:
    number = as_expr(value)
    assert isinstance(number, Const)
    return number.value
