"""Does every kernel give the float64 answer on the CPU, and is every bad one refused by name?"""

from __future__ import annotations

import importlib.util
import random

import pytest

from tests.kernels.registry import KERNELS, REJECTED, KernelCase, RejectCase, check, for_target
from tilelang_diagnostics import CompileError

SEED = 20261130
HAS_TORCH = importlib.util.find_spec("torch") is not None


# Of the kernels as people write them, as many as there is time for; all of them with --full.
WILD = [case.name for case in for_target("cpu") if case.row == "wild"]
LATER = frozenset(WILD) - {*random.Random(SEED).sample(WILD, len(WILD) // 3)}


@pytest.mark.parametrize("case", for_target("cpu"), ids=lambda case: case.name)
def test_gives_the_float64_answer(case: KernelCase, full: bool) -> None:
    if case.name in LATER and not full:
        pytest.skip("runs with --full")
    if case.needs_torch and not HAS_TORCH:
        pytest.skip("PyTorch holds the dtypes of this kernel")
    check(case)


GPU_ONLY = tuple(case for case in KERNELS if "cpu" not in case.targets)


@pytest.mark.parametrize("case", GPU_ONLY, ids=lambda case: case.name)
def test_what_the_cpu_lacks_is_refused_by_name(case: KernelCase) -> None:
    if case.needs_torch and not HAS_TORCH:
        pytest.skip("PyTorch holds the dtypes of this kernel")
    with pytest.raises(CompileError) as refusal:
        check(case)
    errors = [d for d in refusal.value.diagnostics if d.is_error]
    assert {d.code for d in errors} == {"TL401"}
    assert all("T." in d.message for d in errors)


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.name)
def test_is_refused_by_name(case: RejectCase) -> None:
    with pytest.raises(CompileError) as refusal:
        case.attempt()
    (found,) = (d for d in refusal.value.diagnostics if d.is_error)
    assert found.code == case.code
    for word in case.mentions:
        assert word in found.message


def test_names_are_unique_and_rows_complete() -> None:
    names = [case.name for case in KERNELS]
    assert len(names) == len(set(names))
    # Two rows of the list of required kernels hold no kernel: they are in test_language.py.
    of_our_own = {"tma_copy", "wgmma_gemm", "wild"}
    assert len({case.row for case in KERNELS} - of_our_own) == 42
