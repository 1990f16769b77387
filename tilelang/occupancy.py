"""How many blocks and warps of a kernel does one multiprocessor run at once, and what limits them?

    >>> occupancy_of(parse_target("cuda:sm_90a"), threads=128, registers=168, shared=49152)
    Occupancy(blocks=3, warps=12, most_warps=64, limited_by=('registers',))

Pure arithmetic on a table of limits, as NVIDIA's occupancy calculator does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilelang.target import Target

WARP: Final = 32
# Registers are given to a warp in units of 256, from one of four quarters of the register file.
_REGISTER_UNIT, _QUARTERS = 256, 4


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one multiprocessor has, for all blocks it runs. `reserved` bytes of shared memory go to
    the system for each block; a block's share is a multiple of `shared_unit`."""

    shared_bytes: int
    warps: int
    blocks: int
    registers: int = 65536
    reserved: int = 1024
    shared_unit: int = 128


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What runs at once. `limited_by` names what would have to shrink for another block."""

    blocks: int
    warps: int
    most_warps: int
    limited_by: tuple[str, ...]

    @property
    def percent(self) -> int:
        """Warps of those there is room for."""
        return 100 * self.warps // self.most_warps


# CUDA C++ programming guide, table "Technical specifications per compute capability".
MULTIPROCESSORS: Final[Mapping[str, Multiprocessor]] = {
    "sm_70": Multiprocessor(96 << 10, 64, 32, reserved=0, shared_unit=256),
    "sm_75": Multiprocessor(64 << 10, 32, 16, reserved=0, shared_unit=256),
    "sm_80": Multiprocessor(164 << 10, 64, 32),
    "sm_86": Multiprocessor(100 << 10, 48, 16),
    "sm_87": Multiprocessor(164 << 10, 48, 16),
    "sm_89": Multiprocessor(100 << 10, 48, 24),
    "sm_90": Multiprocessor(228 << 10, 64, 32),
    "sm_100": Multiprocessor(228 << 10, 64, 32),
    "sm_103": Multiprocessor(228 << 10, 64, 32),
    "sm_120": Multiprocessor(100 << 10, 48, 24),
}


def multiprocessor_of(target: Target) -> Multiprocessor | None:
    """The row of a target; None for one that has no multiprocessors."""
    return MULTIPROCESSORS.get(target.arch.rstrip("af")) if target.kind == "cuda" else None


def occupancy_of(
    target: Target, *, threads: int, registers: int, shared: int
) -> Occupancy | None:  # fmt: skip
    """Of a kernel with `threads` a block, `registers` a thread and `shared` bytes a block."""
    row = multiprocessor_of(target)
    if row is None:
        return None
    warps = max(1, -(-threads // WARP))
    limits = {
        "threads": row.warps // warps,
        "blocks": row.blocks,
        "registers": _by_registers(row, registers, warps),
        "shared memory": row.shared_bytes // _rounded(shared + row.reserved, row.shared_unit)
        if shared + row.reserved
        else row.blocks,
    }
    blocks = min(limits.values())
    return Occupancy(
        blocks, blocks * warps, row.warps, tuple(n for n, most in limits.items() if most == blocks)
    )


def _by_registers(row: Multiprocessor, registers: int, warps: int) -> int:
    if registers == 0:
        return row.blocks
    of_warp = _rounded(registers * WARP, _REGISTER_UNIT)
    return row.registers // _QUARTERS // of_warp * _QUARTERS // warps


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
