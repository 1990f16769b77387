"""T.cumsum: every partial result replaces the element it ends at, so it lives there.

T.cumsum(x, y, dim=0)      # y as x
"""

from __future__ import annotations

from tilelang.layout.constraints import Equals, Mode
from tilelang.layouts.builder import Builder
from tilelang.layouts.rules.naming import origin_of
from tilelang.layouts.rules.reduce import in_registers
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("scan",)


def demand(b: Builder, op: TileOp) -> None:
    """Source and result lie alike."""
    regions = [arg for arg in op.args if isinstance(arg, Region)]
    if len(regions) < 2 or regions[0].buffer is regions[1].buffer:
        return
    origin = origin_of(op)
    source = in_registers(b, regions[0], Mode.READ, origin)
    result = in_registers(b, regions[1], Mode.WRITE, origin)
    if source is not None and result is not None and source.shape == result.shape:
        b.constraints.append(Equals(result, source, origin))
