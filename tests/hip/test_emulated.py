"""Printed HIP gives the right numbers on the emulator, in every order of threads, and clean."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.hip.kernels import CASES, Case, result_of
from tests.hip.test_printed import printed
from tests.kernels.case import KernelCase, relative_error
from tests.kernels.registry import KERNELS
from tests.support.every_op import every_op
from tilelang.codegen.device_printer import print_device
from tilelang.codegen.hip import HIP
from tilelang.codegen.source_map import SourceMap
from tilelang.emulator.call import Region
from tilelang.emulator.launch import build_library, launch
from tilelang.emulator.source import refusals
from tilelang.emulator.toolchain import find_compiler
from tilelang_diagnostics import CompileError

SEED = 20261130
SHUFFLED = ("row_sums", "softmax", "product", "product_pipelined", "attention")


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_numbers(case: Case, mode: str, full: bool) -> None:
    if not full and mode != "check" and (mode != "shuffle:1" or case.name not in SHUFFLED):
        pytest.skip("runs with --full")
    arrays = case.inputs(np.random.default_rng(SEED))
    got, want = result_of(case, arrays)
    kernel = tilelang.compile(case.make(), target="hip:gfx942", execution_backend=MODES[mode])
    kernel(*arrays, got)
    assert relative_error(got, want) <= case.allowed


# Kernels of the registry that this dialect has everything for; the reductions of a warp are left
# out, whose references speak of 32 lanes.
FITTING = tuple(
    case for case in KERNELS
    if "cuda:sm_80" in case.targets
    and not case.name.startswith(("warp_reduce_", "gemm_fp8", "mla_decode_persistent"))
)  # fmt: skip
ALWAYS = ("gemm_float16", "mha_fwd_causal", "rms_norm", "dequant_w4a8")
SAMPLE = 6


def _sample() -> set[str]:
    names = [case.name for case in random.Random(SEED).sample(FITTING, SAMPLE)]
    return {*names, *(case.name for case in FITTING if case.name.startswith(ALWAYS))}


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", FITTING, ids=lambda case: case.name)
def test_registry(case: KernelCase, mode: str, full: bool) -> None:
    if not full and (case.name not in _sample() or mode != "check"):
        pytest.skip("runs with --full")
    if case.needs_torch:
        pytest.importorskip("torch")
    check_emulated(case, MODES[mode], "hip:gfx942")


@needs_compiler
def test_every_operation_is_emulated() -> None:
    """Each row that the dialect has compiles against the emulator's headers."""
    source = print_device(every_op("gfx942"), HIP)
    assert refusals(source) == ()
    assert build_library(source, True, find_compiler()).exists()


@needs_compiler
def test_a_barrier_left_out_is_a_race() -> None:
    case = next(c for c in CASES if c.name == "product")
    device = printed(case)
    lines = tuple(
        replace(line, text="") if "tl::sync_threads();" in line.text else line
        for line in device.source.lines
    )
    assert lines != device.source.lines
    damaged = replace(device, source=SourceMap(lines))
    arrays = case.inputs(np.random.default_rng(SEED))
    got, _ = result_of(case, arrays)
    slots = [slot.name for slot in device.slots]
    tensors = dict(zip(slots, (*arrays, got), strict=True))
    regions = [Region(n, a.ctypes.data, a.nbytes, False) for n, a in tensors.items()]
    names = {n: a.ctypes.data for n, a in tensors.items()}
    with pytest.raises(CompileError) as accused:
        launch(damaged, names, regions, MODES["check"])
    assert "TL731" in {d.code for d in accused.value.diagnostics}
