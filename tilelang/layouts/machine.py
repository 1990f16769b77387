"""For which machine are layouts inferred?

A CPU needs none. So that the question can be asked everywhere, a target whose threads do not
cooperate is answered for `NOMINAL`, an ordinary GPU, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tilelang.layout.banks import BANKS
from tilelang.layout.instructions import FAMILY_OF, Family
from tilelang.target import Target, parse_target

NOMINAL: Final = Target("cuda", "sm_80")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a layout depends on. `family` are the matrix instructions, None where their fragments
    are not tabulated, and `arch` the number of the architecture among those that have them.
    `nominal` says that the kernel is compiled for something that needs no layouts: what is said
    then informs, and nothing is refused."""

    name: str
    warp: int
    banks: int
    arch: int | None
    family: Family | None
    has_ldmatrix: bool
    has_wgmma: bool = False
    has_cp_async: bool = False
    nominal: bool = False
    registers: int | None = None  # of one thread

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=64)
def machine_of(target: str | Target) -> Machine:
    """The machine for a target; raises what `parse_target` raises for what is none."""
    wanted = parse_target(target)
    nominal = not wanted.capabilities.threads_cooperate
    found = NOMINAL if nominal else wanted
    row = found.capabilities
    family = FAMILY_OF.get(row.mma)
    return Machine(
        str(found),
        row.warp_size,
        row.shared_banks or BANKS,
        None if family is None else found.number,
        family,
        row.has_ldmatrix,
        row.mma == "wgmma",
        row.has_cp_async,
        nominal,
        row.registers,
    )
