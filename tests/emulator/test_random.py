"""Random kernels as the differential test on a GPU runs them, on the emulator in checked mode."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.gpu.pipelined import random_pipelined
from tests.gpu.random_kernels import random_gemm, random_tiles

COUNT, SEED, SAMPLE = 100, 20261130, 3
MAKERS: Final[dict[str, Any]] = {
    "gemm": random_gemm, "tiles": random_tiles, "pipelined": random_pipelined,
}  # fmt: skip
# Tiles that lie column by column in shared memory and row by row in a tensor of odd width: copied
# in words that took neighbours of the tile for neighbours of the tensor.
PINNED: Final = (("pipelined", 10), ("pipelined", 22), ("pipelined", 55))
TOO_LARGE: Final = (("pipelined", 46),)  # for the shared memory of any GPU (TL406)


def _sample() -> frozenset[tuple[str, int]]:
    rng = random.Random(SEED)
    drawn = {(kind, number) for kind in MAKERS for number in rng.sample(range(COUNT), SAMPLE)}
    return frozenset(drawn | set(PINNED))


@needs_compiler
@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("kind", MAKERS)
def test_random_kernel(kind: str, number: int, full: bool) -> None:
    if (kind, number) in TOO_LARGE:
        pytest.skip("needs more shared memory than there is")
    if not full and (kind, number) not in _sample():
        pytest.skip("runs with --full")
    pytest.importorskip("torch")
    check_emulated(MAKERS[kind](number), MODES["check"], "cuda:sm_90a")
