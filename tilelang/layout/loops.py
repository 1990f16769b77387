"""How an elementwise loop nest is spread over the threads of a block when nothing else decides.

The iterations are numbered with the fastest dimension last and dealt out in vectors of
neighbours: vector `q` goes to thread `q % threads`, so that a warp touches neighbouring memory.

    >>> str(loop_layout((128, 64), threads=128, vector=8))
    'thread=i%16*8 + j//8, slot=i//16*8 + j%8'

When the threads do not divide the iterations the last round is partly idle; `Fragment.holes`
counts the idle places, and code guards them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import IndexMap, checked_shape, linear_index


def loop_layout(
    extents: Sequence[int], threads: int, vector: int = 1, fastest: int = -1
) -> Fragment:
    """The default distribution of a loop nest of `extents`, vectorised along `fastest`."""
    shape = checked_shape(tuple(extents))
    if threads < 1 or vector < 1:
        raise ValueError(f"a loop needs threads and a vector width, got {threads} and {vector}")
    if not -len(shape) <= fastest < len(shape):
        raise ValueError(f"no dimension {fastest} in a loop of {shape}")
    if shape[fastest] % vector:
        raise ValueError(f"vectors of {vector} do not divide {shape[fastest]} iterations")
    return _loop_layout(shape, threads, vector, fastest % len(shape))


def vector_widths(extent: int, bits: int, limit: int | None = None) -> tuple[int, ...]:
    """The legal vector widths for `bits`-wide elements along `extent`, widest first."""
    widest = max(1, 128 // bits) if limit is None else max(1, limit)
    return tuple(1 << k for k in range(widest.bit_length() - 1, -1, -1) if extent % (1 << k) == 0)


def ordinary(shape: Sequence[int], threads: int, bits: int) -> Fragment:
    """The layout of a tile nobody has wishes for: as wide as leaves no thread idle."""
    extents = checked_shape(tuple(shape))
    room = max(1, math.prod(extents) // threads)
    widths = vector_widths(extents[-1], bits)
    return loop_layout(extents, threads, next((w for w in widths if w <= room), 1))


def full_extents(extent: int, threads: int, vector: int = 1) -> tuple[int, int]:
    """The nearest extents below (or 0) and above that leave no thread idle."""
    step = threads * vector
    return extent // step * step, -(-extent // step) * step


def replicated(shape: Sequence[int], threads: int) -> Fragment:
    """Every thread holds the whole tile."""
    extents = checked_shape(tuple(shape))

    def fn(*x: Any) -> tuple[Any, Any]:
        return x[-1], linear_index(x[:-1], extents)

    return Fragment.of_map(IndexMap.trace((*extents, threads), fn))


@cache
def _loop_layout(shape: tuple[int, ...], threads: int, vector: int, fastest: int) -> Fragment:
    order = [*(d for d in range(len(shape)) if d != fastest), fastest]

    def fn(*x: Any) -> tuple[Any, Any]:
        number = linear_index([x[d] for d in order], [shape[d] for d in order])
        thread = number // vector % threads
        return thread, number // (vector * threads) * vector + number % vector

    return Fragment.of_map(IndexMap.trace((*shape, 1), fn))
