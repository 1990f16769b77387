"""Conversions and divisions at their edges, on the CPU, exactly.

The same kernels are compiled for a GPU here, and run there by `benchmarks/gpu_check.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilelang
from tests.gpu.lowering import source_of
from tests.gpu.numbers import CASES, SIZE, nibbles
from tests.kernels.case import KernelCase, to_numpy
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_on_the_cpu(case: KernelCase) -> None:
    if case.needs_torch:
        pytest.importorskip("torch")
    inputs = case.make_inputs(0)
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values())
    made = case.make(**case.kernel_params())
    found = tilelang.compile(made, out_idx=list(case.out_idx), target="cpu")(*inputs)
    for have, want in zip(found if isinstance(found, (list, tuple)) else (found,), expected,
                          strict=True):  # fmt: skip
        have = to_numpy(have)
        different = np.flatnonzero(~((have == want) | ((have != have) & (want != want))))
        assert not len(different), [(inputs[0][k], have[k], want[k]) for k in different[:5]]
        assert len(want) == SIZE


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiles_for_a_gpu(case: KernelCase) -> None:
    if case.needs_torch:
        pytest.importorskip("torch")
    source = source_of(case.make(**case.kernel_params()).function, "sm_80")
    binary = compile_cuda(source, parse_target("cuda:sm_80"))
    assert binary.cubin
    assert not binary.warnings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numbers_float32_to_int8", "tl::cast<tl::int8>"),
        ("numbers_float64_to_int32", "tl::cast<int>"),
        ("numbers_float32_to_int64", "tl::cast<"),
    ],
)
def test_conversions_that_c_leaves_open_go_through_a_function(name: str, text: str) -> None:
    (case,) = (c for c in CASES if c.name == name)
    assert text in source_of(case.make(**case.kernel_params()).function).text


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("columns", [7, 8])
def test_nibbles_of_other_threads_are_left_alone(columns: int) -> None:
    """Elements of two threads, and of two blocks, may share a byte."""
    source = source_of(nibbles(columns).function)
    assert "tl::store_packed_among<tl::packed_int4>(B," in source.text
    assert compile_cuda(source, parse_target("cuda:sm_80")).cubin
