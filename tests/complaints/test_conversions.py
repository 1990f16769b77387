"""Kernels of complaints that a GPU does with conversions, or at awkward sizes: right on the CPU.

`tests/gpu/test_compiles.py` compiles them for a GPU; `benchmarks/gpu_check.py` runs them there.
"""

from __future__ import annotations

import pytest

import tilelang
from tests.gpu.conversions import CASES
from tests.kernels.case import TOLERANCE, KernelCase, relative_error, to_numpy


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_numbers(case: KernelCase) -> None:
    if case.needs_torch:
        pytest.importorskip("torch")
    inputs = case.make_inputs(0)
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values())
    kernel = tilelang.compile(
        case.make(**case.kernel_params()), out_idx=list(case.out_idx), target="cpu"
    )
    found = kernel(*inputs)
    allowed = TOLERANCE.get(case.precision[0] or str(found.dtype).split(".")[-1], 0.0)
    assert relative_error(to_numpy(found), expected[0]) <= allowed
