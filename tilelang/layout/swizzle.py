"""How a shared tile is permuted so that no access has bank conflicts: the named swizzles.

All of them keep 16-byte chunks whole and xor the chunk number with bits of the address of the
128-byte line it lies in, which is how TMA and WGMMA spell the same modes: 128B flips three bits,
64B two, 32B one. Rows of a tile are cut into columns of one line (128, 64 or 32 bytes), stored
one column after the other, as a TMA box is.

    >>> tile = make_swizzled_layout(Tile((64, 64), bits=16))      # rows of 128 bytes
    >>> str(tile), tile.inverse().compose(tile) == identity((64, 64))
    ('(i*64 + j) ^ i%8*8', True)

A buffer is anything with `.shape` and a `.dtype` that has `.bits`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from tilelang.layout.banks import Pattern, conflicts
from tilelang.layout.digits import Digit, Xor
from tilelang.layout.index_map import checked_shape, linear_index
from tilelang.layout.layout import Layout

LONGEST_BOX = 256  # elements of a TMA box along any dimension (PTX ISA, tensor tile mode)
CHUNK_BITS = 128  # the widest access of one lane, and the unit every swizzle moves
LINE_BITS = 1024  # all banks once


class SwizzleMode(Enum):
    """The named swizzles, by the bytes of a row they spread over the banks."""

    NONE = 0
    QUARTER_BANK = 32
    HALF_BANK = 64
    FULL_BANK = 128

    @property
    def row_bits(self) -> int:
        """Bits of one row of the swizzled column."""
        return self.value * 8


class HasBits(Protocol):
    """A dtype, as far as a layout cares."""

    @property
    def bits(self) -> int: ...


class HasShape(Protocol):
    """A buffer, as far as a layout cares."""

    @property
    def shape(self) -> Any: ...

    @property
    def dtype(self) -> HasBits: ...


@dataclass(frozen=True, slots=True)
class Tile:
    """A shape with an element width: the plainest buffer."""

    shape: tuple[int, ...]
    bits: int

    @property
    def dtype(self) -> Tile:
        """The element type, of which only `.bits` is asked."""
        return self


def make_swizzled_layout(buffer: HasShape, k_major: bool = True, allow_pad: bool = True) -> Layout:
    """The layout an operand tile wants in shared memory.

    The widest named swizzle its rows are a multiple of. With `k_major=False` the matrix
    instruction reads down the columns; 32- and 64-bit elements cannot be transposed on the way,
    and the swizzle is chosen by counting conflicts. Rows no swizzle fits are padded to an odd
    number of 16-byte chunks when `allow_pad`, else left row-major.
    """
    shape, bits = _tile(buffer)
    mode = swizzle_mode(shape, bits)
    if mode is not SwizzleMode.NONE:
        if bits < 32 or (k_major and bits == 32):
            return bank_swizzle(shape, bits, mode)
        return choose_swizzle(shape, bits, operand_reads(shape, k_major))
    # With an odd pitch, eight rows of one chunk each fall into eight different chunks of a line.
    chunks = -(-shape[-1] * bits // CHUNK_BITS) | 1
    if not allow_pad or len(shape) < 2 or chunks * CHUNK_BITS % bits:
        return Layout.row_major(shape)
    padded = (*shape[:-1], chunks * CHUNK_BITS // bits)
    return Layout(shape, lambda *x: linear_index(x, padded), out_shape=(math.prod(padded),))


def make_full_bank_swizzled_layout(buffer: HasShape) -> Layout:
    """The 128-byte swizzle."""
    return bank_swizzle(*_tile(buffer), SwizzleMode.FULL_BANK)


def make_half_bank_swizzled_layout(buffer: HasShape) -> Layout:
    """The 64-byte swizzle."""
    return bank_swizzle(*_tile(buffer), SwizzleMode.HALF_BANK)


def make_quarter_bank_swizzled_layout(buffer: HasShape) -> Layout:
    """The 32-byte swizzle."""
    return bank_swizzle(*_tile(buffer), SwizzleMode.QUARTER_BANK)


def make_wgmma_swizzled_layout(
    buffer: HasShape, continuity: int | None = None, k_major: bool = True
) -> Layout:
    """The layout a WGMMA operand wants: the widest named swizzle that fits rows of `continuity`
    elements (all of the last dimension by default). Both majors are stored the same way."""
    del k_major
    shape, bits = _tile(buffer)
    row = shape[-1] if continuity is None else continuity
    return bank_swizzle(shape, bits, swizzle_mode((*shape[:-1], row), bits))


def make_tcgen05mma_swizzled_layout(
    buffer: HasShape, continuity: int | None = None, k_major: bool = True
) -> Layout:
    """The layout a tcgen05 operand in shared memory wants, which is that of WGMMA."""
    return make_wgmma_swizzled_layout(buffer, continuity, k_major)


def make_linear_layout(buffer: HasShape | Sequence[int] | int) -> Layout:
    """Row-major, of a buffer or of a shape."""
    return Layout.row_major(getattr(buffer, "shape", buffer))


def swizzle_mode(shape: Sequence[int], bits: int) -> SwizzleMode:
    """The widest swizzle whose rows divide the rows of `shape`."""
    if len(shape) >= 2 and CHUNK_BITS % bits == 0:
        for mode in (SwizzleMode.FULL_BANK, SwizzleMode.HALF_BANK, SwizzleMode.QUARTER_BANK):
            if shape[-1] * bits % mode.row_bits == 0:
                return mode
    return SwizzleMode.NONE


def bank_swizzle(shape: Sequence[int], bits: int, mode: SwizzleMode) -> Layout:
    """The layout of a named swizzle; leading dimensions are whole tiles, one after another."""
    extents = checked_shape(tuple(shape))
    if mode is SwizzleMode.NONE:
        return Layout.row_major(extents)
    if len(extents) < 2:
        raise ValueError(f"a swizzle permutes rows of a tile, got the shape {extents}")
    if CHUNK_BITS % bits or extents[-1] * bits % mode.row_bits:
        raise ValueError(
            f"rows of {extents[-1]} x {bits} bits are no multiple of the {mode.value} bytes "
            f"that the {mode.name.lower().replace('_', ' ')} swizzle permutes"
        )
    rows, columns = math.prod(extents[:-1]), extents[-1]
    width = mode.row_bits // bits
    xor = Xor(0, 0, LINE_BITS // bits, mode.row_bits // CHUNK_BITS, CHUNK_BITS // bits)
    tile = _columns(extents[-2:], width, (xor,))
    if len(extents) == 2:
        return tile
    leading = extents[:-2]
    size = rows * columns // math.prod(leading)
    return Layout(extents, lambda *x: linear_index(x[:-2], leading) * size + tile(x[-2], x[-1]))


def choose_swizzle(shape: Sequence[int], bits: int, patterns: Sequence[Pattern]) -> Layout:
    """The xor swizzle of 16-byte chunks with the fewest passes over `patterns`.

    Of equally good ones the simplest: fewest flipped bits, then the smallest unit.
    """
    extents = checked_shape(tuple(shape))
    mode = swizzle_mode(extents, bits)
    if mode is SwizzleMode.NONE:
        return Layout.row_major(extents)
    tile = extents[-2:]
    candidates = [
        _columns(tile, mode.row_bits // bits, xors) for xors in _xor_candidates(bits, mode)
    ]

    def passes(layout: Layout) -> int:
        return sum(conflicts(layout, pattern, bits).transactions for pattern in patterns)

    best = min(candidates, key=passes)
    if len(extents) == 2:
        return best
    leading, size = extents[:-2], math.prod(tile)
    return Layout(extents, lambda *x: linear_index(x[:-2], leading) * size + best(x[-2], x[-1]))


def operand_reads(shape: Sequence[int], k_major: bool) -> tuple[Pattern, ...]:
    """How lanes read a matrix operand element by element: 8 rows by 4 along k (PTX ISA 9.7.14.5,
    `groupID` and `threadID_in_group`)."""
    rows, columns = shape[-2], shape[-1]
    lanes = [(lane // 4, lane % 4) for lane in range(32)]
    at = [(g, t) if k_major else (t, g) for g, t in lanes]
    return tuple(
        Pattern(f"operand at ({r}, {c})", tuple(((g + r) % rows, (t + c) % columns) for g, t in at))
        for r, c in ((0, 0), (4, 0), (0, 4))
    )


def _columns(tile: Sequence[int], width: int, xors: tuple[Xor, ...]) -> Layout:
    rows, columns = tile
    digits = (
        Digit(1, 1, width, 1),
        Digit(0, 1, rows, width),
        Digit(1, width, columns // width, rows * width),
    )
    return Layout.from_digits((rows, columns), digits, xors=xors, out_shape=(rows * columns,))


def _xor_candidates(bits: int, mode: SwizzleMode) -> list[tuple[Xor, ...]]:
    """No swizzle, then every field that flips chunk bits of a row by bits of the row number."""
    line, chunk, row = LINE_BITS // bits, CHUNK_BITS // bits, mode.row_bits // bits
    found: list[tuple[Xor, ...]] = [()]
    extent = 2
    while extent * chunk <= row:
        mul = chunk
        while mul * extent <= row:
            found += [(Xor(0, 0, div, extent, mul),) for div in (line, line * 2, line * 4)]
            mul *= 2
        extent *= 2
    return found


def _tile(buffer: HasShape) -> tuple[tuple[int, ...], int]:
    return checked_shape(tuple(buffer.shape)), int(buffer.dtype.bits)
