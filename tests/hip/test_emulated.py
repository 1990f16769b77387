"""Printed HIP gives the right numbers on the emulator, in every order of threads, and clean."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.hip.kernels import CASES, Case, result_of
from tests.kernels.case import relative_error
from tests.kernels.registry import KERNELS

SEED = 20261130
QUICK = ("shuffle:1", "check")


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(case: Case, mode: str, full: bool) -> None:
    if not full and mode not in QUICK:
        pytest.skip("runs with --full")
    arrays = case.inputs(np.random.default_rng(SEED))
    got, want = result_of(case, arrays)
    kernel = tilelang.compile(
        case.make(), target="hip:gfx942", execution_backend=MODES[mode]
    )
    kernel(*arrays, got)
    assert relative_error(got, want) <= case.allowed
