"""T.tma_copy: the copy engine reads or writes a shared tile, in a swizzle or row by row.

T.tma_copy(A[by * 128, k * 64], A_shared, barrier=full[0])     # 128 x 64 float16: 128 bytes
"""

from __future__ import annotations

from tilelang.layout.swizzle import CHUNK_BITS, LONGEST_BOX, SwizzleMode
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import EngineUse
from tilelang.layouts.rules.naming import origin_of
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import TileOp

OPS = ("tma_copy",)


def demand(b: Builder, op: TileOp) -> None:
    """The shared side lies as the engine writes it."""
    for region in op.args[:2]:
        assert isinstance(region, Region)
        buffer = region.buffer
        if buffer.is_shared and known_shape(buffer) is not None and buffer.dtype.bits >= 8:
            b.engine_uses.append(EngineUse(storage(buffer), origin_of(op), modes_of(buffer)))


def modes_of(buffer: Buffer) -> tuple[SwizzleMode, ...]:
    """The layouts of a shared tile that TMA fills."""
    shape = known_shape(buffer)
    assert shape is not None
    row = shape[-1] * buffer.dtype.bits
    if len(shape) < 2:
        return (SwizzleMode.NONE,)
    found = [m for m in SwizzleMode if m.value and row % m.row_bits == 0]
    if shape[-1] <= LONGEST_BOX and row % CHUNK_BITS == 0:
        found.append(SwizzleMode.NONE)
    return tuple(found)
