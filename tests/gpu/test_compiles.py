"""Kernels compile for the architectures they claim, without a warning of the compiler."""

from __future__ import annotations

import re

import pytest

from tests.gpu import conversions, gemms, tiles
from tests.gpu.lowering import source_of
from tests.gpu.lowering_kernels import KERNELS
from tests.gpu.pipelined import random_pipelined
from tests.kernels.case import KernelCase
from tests.kernels.registry import KERNELS as REGISTERED
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target

ARCHS = ("sm_80", "sm_90a")
# One of each kind; `benchmarks/gpu_check.py` builds and runs them all.
SAMPLE = (
    "gpu_gemm_float16_tn", "gpu_gemm_int8_nn", "gpu_gemm_float32_nt", "gpu_gemm_float64_nn",
    "gpu_gemm_a_in_registers", "gpu_gemm_stages", "gpu_reduce_sum_5x1000_1_shared",
    "gpu_softmax_float16_1", "gpu_histogram", "gpu_reducer_sum", "gpu_single_elements",
    "gpu_gemm_float16_k8_tt", "gpu_gemm_float16_k24_nn", "gpu_gemm_bfloat16_k8_nt",
    "gpu_gemm_float32_k4_nn", "gpu_gemm_float32_k12_tt", "gpu_gemm_int8_k16_nn",
    "gpu_gemm_int8_k48_nt", "gpu_gemm_int8_8_rows", "gpu_gemm_k8_a_in_registers",
    "gpu_two_dimensional_block", "gpu_dynamic_rows", "gpu_scan_64x32_0_on_fragment",
)  # fmt: skip
CASES = {case.name: case for case in (*gemms.CASES, *tiles.CASES)}

pytestmark = pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")


def check(function: object, arch: str) -> None:
    binary = compile_cuda(source_of(function, arch), parse_target(f"cuda:{arch}"))  # type: ignore[arg-type]
    assert binary.cubin
    assert not binary.warnings


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", KERNELS)
def test_small_kernels(name: str, arch: str) -> None:
    check(KERNELS[name].function, arch)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", SAMPLE)
def test_cases(name: str, arch: str) -> None:
    case = CASES[name]
    check(case.make(**case.kernel_params()).function, arch)


@pytest.mark.parametrize("number", [0, 1, 3, 7, 19])
def test_pipelined_gemms(number: int) -> None:
    case = random_pipelined(number)
    check(case.make(**case.kernel_params()).function, "sm_90a")


@pytest.mark.parametrize("number", range(len(conversions.CASES)))
def test_kernels_of_complaints(number: int, full: bool) -> None:
    if number % 3 and not full:
        pytest.skip("runs with --full")
    case = conversions.CASES[number]
    check(case.make(**case.kernel_params()).function, "sm_80")


@pytest.mark.parametrize("threads", [32, 128])
def test_registers_have_fixed_numbers(threads: int) -> None:
    """A number that depends on the thread would put the tile into local memory."""
    text = source_of(conversions.shifted_rows(threads).function).text
    assert not re.search(r"\bx\[[^\]]*tx", text), text


@pytest.mark.parametrize("case", gemms.SHALLOW, ids=lambda case: case.name)
def test_shallow_tiles_use_matrix_instructions(case: KernelCase) -> None:
    arch = "sm_89" if "float8" in case.name else "sm_80"
    text = source_of(case.make(**case.kernel_params()).function, arch).text
    assert "tl::mma_m16n8k" in text or "tl::mma_m8n8k4_f64" in text


def _prim_funcs() -> list[KernelCase]:
    """A registered kernel of each row, among those that need no tensors to be traced."""
    found: dict[str, KernelCase] = {}
    for case in REGISTERED:
        if case.style == "prim_func" and "cuda:sm_80" in case.targets:
            found.setdefault(case.row, case)
    return list(found.values())


@pytest.mark.parametrize("case", _prim_funcs(), ids=lambda case: case.name)
def test_registered_kernels(case: KernelCase) -> None:
    check(case.make(**case.kernel_params()).function, "sm_80")
