"""Instructions do what an H200 did, bit for bit: `golden/`, recorded by `tests/device/record.py`.

Sums of random floats too: the emulator adds up as tensor cores do (`cpp/runtime/tensor_sum.h`).
"""

from __future__ import annotations

import random
import re
from itertools import groupby

import numpy as np
import pytest

from tests.device.golden import Golden, golden_cases
from tests.device.record import digest
from tests.emulator.golden_run import GOLDEN, emulate, manifest, recorded
from tests.emulator.needs import needs_compiler
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError

CASES = tuple(golden_cases())
SEED, OF_EACH_FAMILY = 20261130, 3


def _sample() -> frozenset[str]:
    """A few cases of each family."""
    draw = random.Random(SEED)
    by_family = groupby(sorted(CASES, key=lambda c: c.family), key=lambda c: c.family)
    groups = [list(group) for _, group in by_family]
    return frozenset(
        case.name for group in groups
        for case in draw.sample(group, min(len(group), OF_EACH_FAMILY))
    )  # fmt: skip


SAMPLED = _sample()


def test_every_case_is_recorded() -> None:
    """Inputs are the same ones, down to the bit: a change of theirs needs a new recording."""
    found = {name: row["inputs"] for name, row in manifest()["cases"].items()}
    assert {case.name: case.fingerprint() for case in CASES} == found


def test_says_what_it_was_recorded_on() -> None:
    said = manifest()
    assert said["device"] == "NVIDIA H200" and said["driver"] and said["date"] and said["command"]
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 300_000


@needs_compiler
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_recorded(case: Golden, full: bool) -> None:
    if not full and case.name not in SAMPLED:
        pytest.skip("runs with --full")
    row = manifest()["cases"][case.name]
    # Half a byte is written by reading all of it, which checked mode takes for a use of the rest.
    checked = Emulator(check=not re.search(r"_[su]4", case.name))
    for mode in (Emulator(), checked) if full else (checked,):
        if "refused" in row:
            with pytest.raises(CompileError, match="illegal instruction"):
                emulate(case, mode)
            continue
        got = emulate(case, mode)
        for name in case.outputs:
            if name in case.rounded:
                _same_numbers(got[name], recorded()[f"{case.name}/{name}"])
            else:
                assert digest(got[name]) == row["outputs"][name]


def _same_numbers(got: np.ndarray, want: np.ndarray) -> None:
    """Every bit, but for what a NaN carries."""
    assert got.dtype == want.dtype and got.dtype.kind in "fu"
    assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f")
