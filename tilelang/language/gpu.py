"""Names that belong to one kind of GPU, collected; each is refused on other targets by name."""

from __future__ import annotations

from tilelang.language import (
    foreign,
    gpu_barriers,
    gpu_memory,
    gpu_tensor_cores,
    warp_schedule,
)

FUNCTIONS = (
    *gpu_barriers.FUNCTIONS, *gpu_tensor_cores.FUNCTIONS, *gpu_memory.FUNCTIONS,
    *foreign.FUNCTIONS, *warp_schedule.FUNCTIONS,
)  # fmt: skip
CONSTANTS = warp_schedule.CONSTANTS
