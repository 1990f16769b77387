"""Every kernel under test, in one explicit tuple.

The kernels live in the other files of this folder, one file per kernel or close family, each with
its inputs and its float64 reference; ``tables`` says at which values they run and where.
"""

from __future__ import annotations

from tests.kernels.case import KernelCase, RejectCase, check, run
from tests.kernels.tables import (
    tier1,
    tier2,
    tier2_language,
    tier3,
    tier4,
    wild,
    wild_orders,
    wild_servers,
)

__all__ = [
    "KERNELS",
    "REJECTED",
    "KernelCase",
    "RejectCase",
    "check",
    "for_target",
    "run",
]

KERNELS: tuple[KernelCase, ...] = (
    *tier1.KERNELS,
    *tier2.KERNELS,
    *tier2_language.KERNELS,
    *tier3.KERNELS,
    *tier4.KERNELS,
    *wild.KERNELS,
    *wild_orders.KERNELS,
    *wild_servers.KERNELS,
)

REJECTED: tuple[RejectCase, ...] = (*tier1.REJECTED, *tier2_language.REJECTED)


def for_target(target: str) -> tuple[KernelCase, ...]:
    """The cases that must run on a target: "cpu", or "cuda" for those of any architecture."""
    return tuple(
        case for case in KERNELS if any(name.split(":")[0] == target for name in case.targets)
    )
