"""Which kernels of the tests run on the emulator, and for which target each?

Random ones are those of `test_random.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.gpu import conversions, extents, foreign, gemms, numbers, random_numbers, tiles
from tests.gpu_hopper import copies, groups, products, roles
from tests.kernels.case import KernelCase
from tests.kernels.registry import KERNELS

# Instructions of Blackwell are refused by name.
_NOT_EMULATED: Final = ("cuda:sm_100",)


@dataclass(frozen=True, slots=True)
class Emulated:
    """A kernel and the target it is compiled for."""

    case: KernelCase
    target: str

    def __str__(self) -> str:
        return f"{self.case.name}-{self.target.partition(':')[2]}"


def emulated() -> tuple[Emulated, ...]:
    """Every kernel of the suite, for its first GPU; those for Ampere for Hopper too where the
    registry has them, since TMA and WGMMA do their work there."""
    return tuple(_all())


def _all() -> Iterator[Emulated]:
    for case in KERNELS:
        target = _target(case)
        if target is None:
            continue
        yield Emulated(case, target)
        if target != "cuda:sm_90a":
            yield Emulated(case, "cuda:sm_90a")
    for case in (
        *gemms.CASES, *tiles.CASES, *conversions.CASES, *numbers.CASES, *foreign.CASES,
        *extents.CASES, *random_numbers.CASES,
        *copies.CASES, *groups.CASES, *products.CASES, *roles.CASES,
    ):  # fmt: skip
        target = _target(case)
        if target is not None:
            yield Emulated(case, target)


# Names of cases whose 8-bit floats only newer tensor cores multiply.
_FLOAT8: Final = ("float8", "f8")


def _target(case: KernelCase) -> str | None:
    if case.name.startswith("gpu_gemm") and any(word in case.name for word in _FLOAT8):
        return "cuda:sm_89"
    named = [t for t in case.targets if t.startswith("cuda:") and t not in _NOT_EMULATED]
    return named[0] if named else None
