"""Does every kernel of the registry give the float64 answer on the CPU, and are bad ones refused?"""

from __future__ import annotations

import importlib.util

import pytest

from tests.kernels.registry import KERNELS, REJECTED, KernelCase, RejectCase, check, for_target

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize("case", for_target("cpu"), ids=lambda case: case.name)
def test_gives_the_float64_answer(case: KernelCase) -> None:
    if case.needs_torch and not HAS_TORCH:
        pytest.skip("PyTorch holds the dtypes of this kernel")
    check(case)


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.name)
def test_is_refused_by_name(case: RejectCase) -> None:
    with pytest.raises(Exception) as refusal:
        case.attempt()
    for word in case.mentions:
        assert word in str(refusal.value)


def test_names_are_unique_and_rows_complete() -> None:
    names = [case.name for case in KERNELS]
    assert len(names) == len(set(names))
    # Two rows of the list of required kernels hold no kernel: they are in test_language.py.
    assert len({case.row for case in KERNELS}) == 42
