"""T.transpose: a loop whose last two dimensions are exchanged on the other side.

T.transpose(a, b)     # for i, j: b[j, i] = a[i, j]
"""

from __future__ import annotations

from tilelang.layout.constraints import Memory, Mode
from tilelang.layouts.addresses import constant_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import region_indices
from tilelang.layouts.rules.naming import origin_of
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("transpose",)
WORD_BITS = 32


def demand(b: Builder, op: TileOp) -> None:
    """One loop reads rows and writes columns."""
    src, dst = op.args
    assert isinstance(src, Region) and isinstance(dst, Region)
    extents = constant_shape(src.extents)
    if extents is None or not (src.dtype.bits and dst.dtype.bits):
        return
    origin = origin_of(op)
    rank = len(extents)
    same = {d: d for d in range(rank)}
    swapped = {**same, rank - 1: rank - 2, rank - 2: rank - 1}
    nest = b.nest(origin.op, extents, origin)
    b.touch(nest, src.buffer, region_indices(src, same), Mode.READ, origin)
    b.touch(nest, dst.buffer, region_indices(dst, swapped), Mode.WRITE, origin)
    if src.buffer.is_shared and dst.buffer.is_shared:
        # One side is walked down its columns: more than a word per lane makes lanes of a warp
        # meet in one bank there, whatever the layout.
        bits = max(src.dtype.bits, dst.dtype.bits)
        rows = (*(0 for _ in extents[1:]), 1)
        limit = max(1, WORD_BITS // bits)
        b.constraints.append(Memory(nest.variable, rows, bits, origin, limit))
