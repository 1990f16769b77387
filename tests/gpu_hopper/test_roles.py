"""Which launches get a warp that loads, why others do not, and that odd ones give right numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES
from tests.gpu_hopper import mixed_roles
from tests.gpu_hopper.mixed_roles import Mixed
from tilelang.roles import split as splitting

TARGET = "cuda:sm_90a"
SEEDS = (3, 8)
MANY = range(60)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch is split wherever it can be, whether or not it pays."""
    monkeypatch.setattr(splitting, "why_not", lambda *_: "")


def check(case: Mixed) -> None:
    a, b = mixed_roles.inputs(case)
    want = mixed_roles.reference(case, a, b)
    out = np.full(want.shape, np.nan, np.float32)
    kernel = tilelang.compile(
        mixed_roles.kernel(case), target=TARGET, execution_backend=MODES["check"]
    )
    kernel(a, b, out)
    error = np.linalg.norm(out - want) / np.linalg.norm(want)
    assert error < 1e-3, f"{case}: off by {error:.2e}"


@needs_compiler
@pytest.mark.usefixtures("always")
@pytest.mark.filterwarnings("ignore")  # each leaves out parts, and what is only for them
@pytest.mark.parametrize("seed", MANY)
def test_mixed_kernels(seed: int, full: bool) -> None:
    if not full and seed not in SEEDS:
        pytest.skip("runs with --full")
    check(mixed_roles.drawn(seed))
