"""Atomic updates of a tile: a loop over both sides, as in a copy."""

from __future__ import annotations

from tilelang.layout.constraints import Mode
from tilelang.layouts.addresses import constant_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import region_indices
from tilelang.layouts.rules.naming import origin_of
from tilelang.layouts.rules.pairing import pair
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("atomic",)


def demand(b: Builder, op: TileOp) -> None:
    """The value is read where it lies; the destination is memory that all threads see."""
    dst, value = op.args
    assert isinstance(dst, Region)
    origin = origin_of(op)
    if not isinstance(value, Region):
        extents = constant_shape(dst.extents)
        if extents is not None:
            nest = b.nest(origin.op, extents, origin)
            indices = region_indices(dst, {d: d for d in range(len(extents))})
            b.touch(nest, dst.buffer, indices, Mode.UPDATE, origin)
        return
    pairing = pair(value, dst)
    if pairing is None:
        return
    nest = b.nest(origin.op, pairing.extents, origin)
    b.touch(nest, value.buffer, region_indices(value, pairing.src), Mode.READ, origin)
    b.touch(nest, dst.buffer, region_indices(dst, pairing.dst), Mode.UPDATE, origin)
