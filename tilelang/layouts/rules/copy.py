"""T.copy and its asynchronous forms: a loop over both sides.

    T.copy(A[by * 64, k * 32], A_shared)
    # for i, j in T.Parallel(64, 32): A_shared[i, j] = A[by * 64 + i, k * 32 + j]

The threads run along whichever dimension of the tensor is contiguous.
"""

from __future__ import annotations

from tilelang.layout.constraints import Fixed, Mode
from tilelang.layout.fragment import Fragment
from tilelang.layouts.ahead import prefer_words
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import region_indices
from tilelang.layouts.rules.naming import origin_of
from tilelang.layouts.rules.pairing import pair
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("copy", "async_copy", "copy_cluster")


def demand(b: Builder, op: TileOp) -> None:
    """Source and destination are touched by one loop."""
    src, dst = op.args[0], op.args[1]
    assert isinstance(src, Region) and isinstance(dst, Region)
    origin = origin_of(op)
    pairing = pair(src, dst)
    if pairing is None:
        return
    nest = b.nest(origin.op, pairing.extents, origin)
    width = op.attr("coalesced_width")
    first = len(b.constraints)
    b.touch(nest, src.buffer, region_indices(src, pairing.src), Mode.READ, origin, width)
    b.touch(nest, dst.buffer, region_indices(dst, pairing.dst), Mode.WRITE, origin, width)
    if b.ahead or op.name == "async_copy":
        prefer_words(b, nest, src.buffer, dst.buffer)
    layout = op.attr("loop_layout")
    if isinstance(layout, Fragment) and layout.shape == nest.extents:
        b.constraints.insert(first, Fixed(nest.variable, layout, origin, convertible=False))
    if isinstance(width, int):
        widest_type = max((src.dtype, dst.dtype), key=lambda dtype: dtype.bits)
        b.limit_width(nest, width, widest_type, origin)
