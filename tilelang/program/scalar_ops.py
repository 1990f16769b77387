"""Which scalar operations do more than yield a value? The one list, for checks and for the IR."""

from __future__ import annotations

from typing import Final

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

# Of those, what gives the same however often it is asked: addresses and questions to buffers.
_QUIET: Final = frozenset({"access_ptr", "address_of", "any_of", "all_of", "activemask"})
# Operations of one kind of GPU, by how their names begin.
_DEVICE_EFFECTS: Final = ("rng_", "tma_", "barrier", "mbarrier", "ptx_", "cp_async")


def has_effect(name: str) -> bool:
    """Whether an operation changes memory, or depends on when other threads come by."""
    return (name in THREAD_OPS and name not in _QUIET) or name.startswith(_DEVICE_EFFECTS)
