"""T.im2col: a loop over the tile that is written; the image is read in runs of channels."""

from __future__ import annotations

from tilelang.layout.constraints import Memory, Mode
from tilelang.layouts.addresses import constant_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import region_indices
from tilelang.layouts.rules.naming import origin_of
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("im2col",)


def demand(b: Builder, op: TileOp) -> None:
    """Neighbours in a row of the tile are neighbours in the image, up to the end of a pixel."""
    image, columns = op.args[:2]
    assert isinstance(image, Region) and isinstance(columns, Region)
    extents = constant_shape(columns.extents)
    if extents is None or not image.dtype.bits:
        return
    origin = origin_of(op)
    nest = b.nest(origin.op, extents, origin)
    indices = region_indices(columns, {d: d for d in range(len(extents))})
    b.touch(nest, columns.buffer, indices, Mode.WRITE, origin)
    strides = (*(None for _ in extents[1:]), 1)
    b.constraints.append(Memory(nest.variable, strides, image.buffer.dtype.bits, origin))
