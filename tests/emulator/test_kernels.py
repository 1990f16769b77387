"""Kernels of the registry give the right numbers on the emulator, in every order of threads.

In checked mode they are accused of nothing.
"""

from __future__ import annotations

import random

import pytest

from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.kernels.case import KernelCase
from tests.kernels.registry import KERNELS

SEED, SAMPLE = 20261129, 25
CASES = tuple(case for case in KERNELS if "cuda:sm_80" in case.targets)


def _sample() -> set[str]:
    return {case.name for case in random.Random(SEED).sample(CASES, SAMPLE)} | {"metaprogramming"}


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel(case: KernelCase, mode: str, full: bool) -> None:
    if not full and (case.name not in _sample() or mode not in ("shuffle:1", "check")):
        pytest.skip("runs with --full")
    if case.needs_torch:
        pytest.importorskip("torch")
    check_emulated(case, MODES[mode])


# TMA, mbarriers and WGMMA, in both major orders.
HOPPER = ("gemm_float16", "jit_gemm_nt", "jit_gemm_tn", "mha_fwd_causal")


@needs_compiler
@pytest.mark.parametrize("name", HOPPER)
def test_kernel_on_hopper(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    for mode in ("shuffle:1", "check"):
        check_emulated(case, MODES[mode], "cuda:sm_90a")
