"""What shape an index map has: mixed-radix digits with strides, and an explicit xor part.

A *digit* of an index is `index // div % extent`; tiles, strides, warps, lanes and registers are
all sums of digits times strides. A bank swizzle is an *xor field*: some bits of an output flipped
by other bits that no field flips, so applying it twice gives back the start.

`recognise` finds this form in a table of values. It is exact: a form is returned only when it
gives every number of the table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang.layout.expr import Const, Expr, Var
from tilelang.layout.lazy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Digit:
    """One term of an output: `index[dim] // div % extent * stride`."""

    dim: int
    div: int
    extent: int
    stride: int

    def __post_init__(self) -> None:
        if self.dim < 0 or self.div < 1 or self.extent < 1:
            raise ValueError(f"a digit needs dim >= 0, div >= 1 and extent >= 1, got {self}")


@dataclass(frozen=True, slots=True)
class Output:
    """`offset` plus the sum of `digits`."""

    digits: tuple[Digit, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Xor:
    """`out[target] ^= out[source] // div % extent * mul`, with powers of two.

    `source` is read before any field is applied; no field may flip the bits another one reads.
    """

    target: int
    source: int
    div: int
    extent: int
    mul: int

    def __post_init__(self) -> None:
        for value in (self.div, self.extent, self.mul):
            if value < 1 or value & (value - 1):
                raise ValueError(f"an xor field is made of powers of two, got {self}")
        if self.target == self.source:
            low, high = sorted((self.div, self.mul))
            if low * self.extent > high:
                raise ValueError(f"an xor field may not flip the bits it reads, got {self}")


@dataclass(frozen=True, slots=True)
class DigitMap:
    """An index map in closed form: a sum of digits per output, then the xor fields."""

    shape: tuple[int, ...]
    outputs: tuple[Output, ...]
    xors: tuple[Xor, ...] = ()

    def __post_init__(self) -> None:
        for output in self.outputs:
            for digit in output.digits:
                if digit.dim >= len(self.shape):
                    raise ValueError(f"{digit} names a dimension {self.shape} does not have")
        for xor in self.xors:
            if max(xor.target, xor.source) >= len(self.outputs):
                raise ValueError(f"{xor} names an output that does not exist")

    def expressions(self) -> tuple[Expr, ...]:
        """One expression per output, over one variable per dimension."""
        variables = tuple(Var(k, n) for k, n in enumerate(self.shape))
        plain = [_sum_of(output, variables) for output in self.outputs]
        result = list(plain)
        for xor in self.xors:
            flip = plain[xor.source] // xor.div % xor.extent * xor.mul
            result[xor.target] = result[xor.target] ^ flip
        return tuple(result)


def recognise(table: NDArray[np.int64]) -> DigitMap | None:
    """The closed form of `table[output, *index]`, or None when it has none of this kind."""
    shape = tuple(table.shape[1:])
    outputs = _additive(table)
    if all(output is not None for output in outputs):
        return DigitMap(shape, tuple(o for o in outputs if o is not None))
    swizzled = frozenset(k for k, output in enumerate(outputs) if output is None)
    xors = _xor_fields(table, swizzled)
    if not xors:
        return None
    # Sources are clean bits, so the swizzled table already holds them as they were.
    outputs = _additive(flip(table, xors))
    if any(output is None for output in outputs):
        return None
    return DigitMap(shape, tuple(o for o in outputs if o is not None), xors)


def flip(table: NDArray[np.int64], xors: tuple[Xor, ...]) -> NDArray[np.int64]:
    """Apply the xor fields to outputs; doing it twice gives the argument back."""
    result = table.copy()
    for xor in xors:
        result[xor.target] ^= table[xor.source] // xor.div % xor.extent * xor.mul
    return result


def _sum_of(output: Output, variables: tuple[Var, ...]) -> Expr:
    terms = sorted(output.digits, key=lambda d: (-abs(d.stride), d.dim, -d.div))
    total: Expr = Const(output.offset)
    for digit in terms:
        total = total + variables[digit.dim] // digit.div % digit.extent * digit.stride
    return total


def _additive(table: NDArray[np.int64]) -> tuple[Output | None, ...]:
    return tuple(_additive_output(values) for values in table)


def _additive_output(values: NDArray[np.int64]) -> Output | None:
    """The digits of one output when it is a sum of one function per dimension."""
    rank = values.ndim
    start = int(values[(0,) * rank])
    digits: list[Digit] = []
    total: NDArray[np.int64] = np.full((1,) * rank, start, dtype=np.int64)
    for dim in range(rank):
        line = values[tuple(slice(None) if d == dim else 0 for d in range(rank))] - start
        total = total + line.reshape([-1 if d == dim else 1 for d in range(rank)])
        found = _radix(dim, line)
        if found is None:
            return None
        digits += found
    return Output(tuple(digits), start) if np.array_equal(total, values) else None


def _radix(dim: int, line: NDArray[np.int64]) -> list[Digit] | None:
    """Split a function of one index, 0 at 0, into its digits from the innermost out."""
    digits: list[Digit] = []
    div = 1
    while len(line) > 1:
        stride = int(line[1])
        off = np.nonzero(line != stride * np.arange(len(line)))[0]
        # The innermost digit ends where the function first leaves its straight line.
        extent = int(off[0]) if len(off) else len(line)
        if stride:
            digits.append(Digit(dim, div, extent, stride))
        if extent == len(line):
            break
        index = np.arange(len(line))
        rest = line[::extent]
        if not np.array_equal(line, stride * (index % extent) + rest[index // extent]):
            return None
        line, div = rest, div * extent
    return digits


_Bit = tuple[int, int]


def _xor_fields(table: NDArray[np.int64], swizzled: frozenset[int]) -> tuple[Xor, ...]:
    """Candidate fields, read off the images of single index bits; the caller verifies them."""
    columns = _columns(table)
    hits: dict[_Bit, int] = defaultdict(int)
    for column in columns:
        for bit in column:
            hits[bit] += 1
    flips: set[tuple[_Bit, _Bit]] = set()
    for column in columns:
        clean = [bit for bit in column if hits[bit] == 1]
        shared = [bit for bit in column if hits[bit] > 1 and bit[0] in swizzled]
        if len(column) > 1 and clean:
            flips |= {(clean[0], target) for target in shared}
    return _merged(flips)


def _columns(table: NDArray[np.int64]) -> list[list[_Bit]]:
    """For each bit of each index, the (output, bit) pairs it flips when all else is zero."""
    shape = table.shape[1:]
    base = np.array([row[(0,) * len(shape)] for row in table])
    columns = []
    for dim, extent in enumerate(shape):
        step = 1
        while step < extent:
            at = tuple(step if d == dim else 0 for d in range(len(shape)))
            changed = (np.array([row[at] for row in table]) ^ base).tolist()
            columns.append(
                [(k, b) for k, v in enumerate(changed) for b in range(v.bit_length()) if v >> b & 1]
            )
            step *= 2
    return columns


def _merged(flips: set[tuple[_Bit, _Bit]]) -> tuple[Xor, ...]:
    """Neighbouring bits with the same distance become one field."""
    fields: list[Xor] = []
    for (source, s), (target, t) in sorted(flips, key=lambda f: (f[0][0], f[1][0], f[0][1])):
        last = fields[-1] if fields else None
        if (
            last is not None
            and (last.source, last.target) == (source, target)
            and (last.div * last.extent, last.mul * last.extent) == (1 << s, 1 << t)
            and (source != target or last.extent * 2 <= _distance(last))
        ):
            fields[-1] = Xor(target, source, last.div, last.extent * 2, last.mul)
        else:
            fields.append(Xor(target, source, 1 << s, 2, 1 << t))
    return tuple(fields)


def _distance(xor: Xor) -> int:
    return max(xor.div, xor.mul) // min(xor.div, xor.mul)
