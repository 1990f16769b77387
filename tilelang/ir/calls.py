"""Which operators do we add to TIRX, and what may a pass assume about each?

Tile operations and statements about buffers are opaque: nothing may move across them. Pure
operators may be duplicated or dropped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from tilelang.ir.attrs import op_name
from tilelang.program.scalar_ops import PURE_SCALARS, THREAD_OPS
from tilelang.program.tile_ops import SCHEMAS


class Effect(Enum):
    """What calling an operator does besides yielding a value."""

    PURE = "pure"
    READ = "read"
    OPAQUE = "opaque"


TILE_OPS: Final = tuple(SCHEMAS)

# Statements that inform later passes; each names its buffers as arguments, so that renaming a
# buffer reaches them.
ANNOTATIONS: Final = ("annotate", "assume")

CALLS: Final[dict[str, Effect]] = {
    **{op_name(name): Effect.OPAQUE for name in (*TILE_OPS, *ANNOTATIONS, *THREAD_OPS)},
    **{op_name(name): Effect.PURE for name in PURE_SCALARS},
}
