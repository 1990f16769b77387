"""Hopper kernels compile without a word of the compiler, to the instructions they are about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.lowering import source_of
from tests.gpu_hopper import copies, groups, products, roles
from tests.gpu_hopper.test_lowering import ring
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang.runtime.sass import disassemble
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target

ARCH = "sm_90a"
# One of each kind; `benchmarks/gpu_check.py` builds and runs them all.
SAMPLE = (
    "wgmma_float16_tn", "wgmma_bfloat16_nt", "wgmma_float32", "wgmma_uint8_int8",
    "wgmma_e5m2_e4m3fn", "wgmma_float16_sums", "wgmma_registers_float16_nn", "wgmma_twice",
    "wgmma_groups_2_2_64x256", "wgmma_tile_64x320x16", "wgmma_copied_nn",
    "tma_through_float16_2x50x3x64_1x32x1x64", "tma_rows_5x128_3", "tma_reused", "groups_halves",
    "groups_reduced", "groups_pipelined_3", "roles_nn", "roles_attention_200_causal",
    "roles_two_loops",
)  # fmt: skip
CASES = {case.name: case for case in (*products.CASES, *copies.CASES, *groups.CASES, *roles.CASES)}

pytestmark = needs_nvrtc


def compiled(function: Any) -> Any:
    return compile_cuda(source_of(function, ARCH), parse_target(f"cuda:{ARCH}"))


@pytest.mark.parametrize("name", SAMPLE)
def test_cases(name: str) -> None:
    """What ptxas has to say of warp groups it calls information: that it serialises them, too."""
    case = CASES[name]
    binary = compiled(case.make(**case.kernel_params()).function)
    assert binary.cubin and not binary.warnings
    assert "(C75" not in binary.log, binary.log
    assert all(r.spill_stores == 0 for r in binary.resources)


@needs_nvdisasm
@pytest.mark.parametrize("name", ["wgmma_float32", "wgmma_e5m2_e4m3fn", "wgmma_uint8_int8"])
def test_machine_instructions_of_products(name: str) -> None:
    case = CASES[name]
    binary = compiled(case.make(**case.kernel_params()).function)
    heads = {op.partition(".")[0] for op in disassemble(binary.cubin).opcodes("main_kernel")}
    wanted = {"wgmma_float32": "HGMMA", "wgmma_e5m2_e4m3fn": "QGMMA", "wgmma_uint8_int8": "IGMMA"}
    assert wanted[name] in heads and "UTMALDG" in heads


@needs_nvdisasm
def test_machine_instructions_of_a_specialised_product() -> None:
    binary = compiled(ring("tma", "tma").function)
    opcodes = disassemble(binary.cubin).opcodes("main_kernel")
    heads = {op.partition(".")[0] for op in opcodes}
    assert {"HGMMA", "UTMALDG", "UTMASTG", "SYNCS"} <= heads
    assert not {"HMMA", "LDSM"} & heads
