"""T.fill and T.clear: nothing. Every owner of an element writes its own copy."""

from __future__ import annotations

from tilelang.layouts.builder import Builder
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("fill",)


def demand(b: Builder, op: TileOp) -> None:
    """No layout is better than another; that the buffer is filled is remembered."""
    region = op.args[0]
    assert isinstance(region, Region)
    b.filled.add(region.buffer)
