"""Which operators do we add to TIRX, and what may a pass assume about each?

Tile operations and statements about buffers are opaque: nothing may move across them. Pure
operators may be duplicated or dropped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from tilelang.ir.attrs import op_name
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

PURE_SCALARS: Final = (
    "expm1", "erfc", "bfe", "extract_lane", "make_vector", "dp4a",
)  # fmt: skip

# Thread-level operators that read and write elements by reference (regions of extent 1) or
# exchange values between threads.
THREAD_OPS: Final = (
    "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor",
    "atomic_addx2", "atomic_addx4", "atomic_load", "atomic_store", "atomic_exch", "atomic_cas",
    "shfl_sync", "shfl_xor", "shfl_up", "shfl_down", "any_sync", "all_sync", "ballot_sync",
    "ballot", "activemask", "match_any_sync", "match_all_sync",
    "syncthreads_and", "syncthreads_or", "syncthreads_count",
    "sync_threads", "sync_warp", "sync_grid", "sync_global", "loop_break",
    "warp_reduce_sum", "warp_reduce_max", "warp_reduce_min", "warp_reduce_bitand",
    "warp_reduce_bitor", "warp_reduce_bitxor",
    "print", "print_buffer", "device_assert", "thread_return", "any_of", "all_of",
    "access_ptr", "address_of", "call_extern", "reducer_update",
)  # fmt: skip

CALLS: Final[dict[str, Effect]] = {
    **{op_name(name): Effect.OPAQUE for name in (*TILE_OPS, *ANNOTATIONS, *THREAD_OPS)},
    **{op_name(name): Effect.PURE for name in PURE_SCALARS},
}
