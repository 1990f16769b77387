"""Which layouts may a shared tile have? From the plainest on; the first good one is taken.

Row-major, the named swizzles, xors of 16-byte chunks that the names leave out (operands read down
their columns), xors of single words (tiles read by columns; they cost wide accesses), and rows
padded to an odd number of words or chunks (they cost memory).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilelang.layout.digits import Xor
from tilelang.layout.index_map import linear_index
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.swizzle import (
    CHUNK_BITS,
    LINE_BITS,
    SwizzleMode,
    bank_swizzle,
    swizzle_mode,
)

WORD_BITS = 32
MAX_VECTOR = 128  # elements of one bit in 16 bytes


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A layout, what it is called, its offsets by row-major position, and the widest vector that
    is one run of memory everywhere in it."""

    name: str
    layout: Layout
    offsets: np.ndarray
    vector: int

    @classmethod
    def of(cls, name: str, layout: Layout) -> Candidate:
        """What there is to know of a layout."""
        return cls(name, layout, layout.offsets().ravel(), layout.vector_width(limit=MAX_VECTOR))

    @property
    def extra(self) -> int:
        """Elements of memory beyond the tile's own."""
        return self.layout.storage - self.layout.size


def candidates(shape: tuple[int, ...], bits: int) -> Iterator[Candidate]:
    """All of them, made as they are asked for."""
    yield plain(shape)
    yield from named(shape, bits)
    yield from unnamed(shape, bits)


@lru_cache(maxsize=512)
def plain(shape: tuple[int, ...]) -> Candidate:
    """Row-major."""
    return Candidate.of("row-major", Layout.row_major(shape))


def swizzle_name(mode: SwizzleMode) -> str:
    """What a named swizzle is called."""
    return f"{mode.value}-byte swizzle"


@lru_cache(maxsize=256)
def named(shape: tuple[int, ...], bits: int) -> tuple[Candidate, ...]:
    """The swizzles that TMA and WGMMA know too, widest first."""
    widest = swizzle_mode(shape, bits)
    modes = [m for m in SwizzleMode if 0 < m.value <= widest.value]
    return tuple(
        Candidate.of(swizzle_name(mode), bank_swizzle(shape, bits, mode))
        for mode in sorted(modes, key=lambda m: -m.value)
        if CHUNK_BITS % bits == 0 and shape[-1] * bits % mode.row_bits == 0
    )


@lru_cache(maxsize=256)
def unnamed(shape: tuple[int, ...], bits: int) -> tuple[Candidate, ...]:
    """Further permutations, and padding."""
    if len(shape) < 2:
        return ()
    return (*_chunk_xors(shape, bits), *_word_xors(shape, bits), *_padded(shape, bits))


def _chunk_xors(shape: tuple[int, ...], bits: int) -> Iterator[Candidate]:
    """Chunks of 16 bytes flipped by other row bits, or by fewer, than the named swizzles use."""
    if CHUNK_BITS % bits or shape[-1] * bits < 2 * CHUNK_BITS:
        return
    line, chunk, row = max(1, LINE_BITS // bits), CHUNK_BITS // bits, shape[-1]
    if row & (row - 1):
        yield from _uneven_xors(shape, line, chunk)
        return
    extent = 2
    while extent * chunk <= row:
        mul = chunk
        while mul * extent <= row:
            for div in (line, line * 2, line * 4):
                yield _xored("xor of 16-byte chunks", shape, Xor(0, 0, max(div, row), extent, mul))
            mul *= 2
        extent *= 2


def _uneven_xors(shape: tuple[int, ...], line: int, chunk: int) -> Iterator[Candidate]:
    """The same where rows are no power of two: lines of memory decide, not rows."""
    if shape[-1] % chunk:
        return
    for extent in (2, 4, 8):
        for mul in (chunk, chunk * 2):
            if math.prod(shape) % (extent * mul) == 0:
                for div in (line, line * 2, line * 4):
                    if extent * mul <= div:
                        yield _xored("xor of 16-byte chunks", shape, Xor(0, 0, div, extent, mul))


def _word_xors(shape: tuple[int, ...], bits: int) -> Iterator[Candidate]:
    """Words, or pairs of them, flipped by the row number."""
    row = shape[-1] & -shape[-1]  # the largest power of two that divides a row
    unit = max(1, WORD_BITS // bits)
    pitch = max(shape[-1], LINE_BITS // bits)
    while unit * bits < CHUNK_BITS and unit * 2 <= row:
        extent = min(WORD_BITS, row // unit)
        if shape[-1] & (shape[-1] - 1) == 0:
            name = f"xor of {unit * bits // 8}-byte words"
            # Lanes may be several rows apart: vectors down a column leave that many out.
            for rows in (1, 2, 4, 8):
                yield _xored(name, shape, Xor(0, 0, pitch * rows, extent, unit))
        unit *= 2


def _padded(shape: tuple[int, ...], bits: int) -> Iterator[Candidate]:
    """Rows an odd number of words, or of chunks, apart."""
    for step_bits, name in ((CHUNK_BITS, "16-byte chunks"), (WORD_BITS, "words")):
        steps = -(-shape[-1] * bits // step_bits) | 1
        if step_bits % bits == 0 and steps * step_bits // bits != shape[-1]:
            pitch = steps * step_bits // bits
            stored = (*shape[:-1], pitch)
            layout = Layout(
                shape, lambda *x, s=stored: linear_index(x, s), out_shape=(math.prod(stored),)
            )
            yield Candidate.of(f"rows padded to {pitch} elements, an odd number of {name}", layout)


def _xored(name: str, shape: tuple[int, ...], xor: Xor) -> Candidate:
    def offset(*x: object) -> object:
        plain_offset = linear_index(x, shape)
        return plain_offset ^ plain_offset // xor.div % xor.extent * xor.mul

    return Candidate.of(name, Layout(shape, offset, out_shape=(math.prod(shape),)))
