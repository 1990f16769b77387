"""Is a launch worth splitting? Measured on an H200 (`benchmarks/results.md`).

A warp that loads pays where the others give all they have to the matrix unit, which only warp
groups do, and where its registers cost no block that a multiprocessor would run beside.
"""

from __future__ import annotations

from typing import Final

from tilelang.layouts.layout_map import LaunchLayouts
from tilelang.occupancy import occupancy_of
from tilelang.roles.plan import WARP
from tilelang.target import Target

# Registers for addresses and values between statements: with as many, those of the kernels in
# `benchmarks/results.md` ("a warp that loads") are split that were faster so, and no others.
BETWEEN: Final = 24


def why_not(launch: LaunchLayouts, threads: int, target: Target) -> str:
    """Why a launch that was split stays whole: nothing, where it pays. `threads` compute."""
    if not launch.products:
        return "nothing is multiplied with what is loaded"
    for product in launch.products:
        if product.groups is None:
            return f"warps multiply into `{product.c.buffer.name}`: {product.why_not}"
    registers = launch.registers + BETWEEN
    shared = sum(entry.bytes or 0 for entry in launch.buffers)
    before, after = (
        occupancy_of(target, threads=n, registers=registers, shared=shared)
        for n in (threads, threads + WARP)
    )
    if before is not None and after is not None and after.blocks < before.blocks:
        return f"with a warp more, {after.blocks} and not {before.blocks} blocks run side by side"
    return ""
