"""Kernels of the tests give the right numbers on the emulator, in every order of threads.

In checked mode they are accused of nothing. A fixed sample by default, all of them in four modes
with `--full`.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, TARGET, check_emulated
from tests.emulator.suite import Emulated, emulated
from tests.gpu import lowering_kernels
from tests.kernels.registry import KERNELS
from tilelang.program.buffer import Buffer

SEED, CHECKED, SHUFFLED = 20261129, 28, 8
CASES = emulated()


def _sample() -> dict[str, frozenset[str]]:
    """What runs by default, by mode."""
    drawn = [str(case) for case in random.Random(SEED).sample(CASES, CHECKED)]
    return {"check": frozenset(drawn), "shuffle:1": frozenset(drawn[:SHUFFLED])}


SAMPLE = _sample()


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", CASES, ids=str)
def test_kernel(given: Emulated, mode: str, full: bool) -> None:
    if not full and str(given) not in SAMPLE.get(mode, frozenset()):
        pytest.skip("runs with --full")
    if given.case.needs_torch:
        pytest.importorskip("torch")
    check_emulated(given.case, MODES[mode], given.target)


def test_every_kernel_of_the_registry_is_there() -> None:
    """All but those for Blackwell, whose instructions are refused by name."""
    there = {given.case.name for given in CASES}
    missing = [case for case in KERNELS if case.name not in there]
    assert all(set(case.targets) <= {"cpu", "cuda:sm_100"} for case in missing)
    assert len({str(given) for given in CASES}) == len(CASES)


# TMA, mbarriers and WGMMA, in both major orders.
HOPPER = ("gemm_float16-sm_90a", "jit_gemm_nt-sm_90a", "mha_fwd_causal-sm_90a")


@needs_compiler
@pytest.mark.parametrize("name", HOPPER)
def test_kernel_on_hopper(name: str) -> None:
    given = next(given for given in CASES if str(given) == name)
    check_emulated(given.case, MODES["check"], given.target)


@needs_compiler
@pytest.mark.parametrize("name", lowering_kernels.KERNELS)
def test_written_down_kernel(name: str, full: bool) -> None:
    """The kernels whose source is in `tests/gpu/goldens` give what the CPU gives."""
    if not full and name not in ("product", "own_rows"):
        pytest.skip("runs with --full")
    kernel = lowering_kernels.KERNELS[name]
    rng = np.random.default_rng(SEED)
    given = [_random(rng, p) for p in kernel.function.params if isinstance(p, Buffer)]
    outputs = []
    for target, backend in (("cpu", None), (TARGET, MODES["check"])):
        arrays = [array.copy() for array in given]
        tilelang.compile(kernel, target=target, execution_backend=backend)(*arrays)
        outputs.append(arrays)
    for on_cpu, on_emulator in zip(*outputs, strict=True):
        np.testing.assert_allclose(on_emulator, on_cpu, rtol=2e-3, atol=2e-3)


def _random(rng: np.random.Generator, buffer: Buffer) -> np.ndarray:
    shape = tuple(int(str(n)) for n in buffer.shape)
    return (rng.standard_normal(shape) * 2).astype(buffer.dtype.name)
