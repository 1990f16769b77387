"""Checked mode and what works beside the threads: bulk copies, matrix units, their fences.

Each damage of a right kernel for Hopper is found, with the lines of both sides.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.codegen.kernels import hopper_gemm
from tests.emulator.damage import find_line, with_line
from tests.emulator.needs import needs_compiler
from tests.support.device import device_func
from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.device_source import DeviceSource
from tilelang.emulator.call import Region
from tilelang.emulator.launch import launch
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

pytestmark = needs_compiler
K = 320


@cache
def right() -> DeviceSource:
    """A ring of two stages between a warp that loads by TMA and a warp group that multiplies, whose
    result is stored by TMA."""
    maps: Any = {"A_map": ("A", (64, 64), 128), "B_map": ("B", (128, 64), 128),
                 "C_map": ("C", (64, 32), 0)}  # fmt: skip
    return print_cuda(device_func(hopper_gemm(64, 128, K), maps=maps))


def run(device: DeviceSource, seed: int = 0) -> np.ndarray:
    arrays: dict[str, np.ndarray] = {
        "A": np.ones((64, K), np.float16), "B": np.ones((128, K), np.float16),
        "C": np.zeros((64, 128), np.float32),
    }  # fmt: skip
    tensors = [Region(k, v.ctypes.data, v.nbytes) for k, v in arrays.items()]
    values = {k: v.ctypes.data for k, v in arrays.items()}
    launch(device, values, tensors, Emulator(check=True, seed=seed))
    return arrays["C"]


def damaged(*changes: tuple[str, str]) -> DeviceSource:
    """Each change of the first line that has a pattern."""
    device = right()
    for pattern, instead in changes:
        number, before = find_line(device, pattern)
        device = with_line(device, number, re.sub(pattern, instead, before))
    return device


def findings(device: DeviceSource, seed: int = 0) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        run(device, seed)
    return caught.value.diagnostics


def became(diagnostic: Diagnostic) -> str:
    """The generated code that the labels show."""
    return " | ".join((diagnostic.label or "", *(label.text for label in diagnostic.labels)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_right_kernel_is_accused_of_nothing(seed: int) -> None:
    np.testing.assert_array_equal(run(right(), seed), K)


ARRIVE = r"tl::mbarrier_arrive\(empty\[k_1 % 2\]\);"
DAMAGES = {
    "no proxy fence before a bulk store": (
        [(r"tl::fence_proxy_async\(\);", "")], "TL736",
        "an asynchronous engine uses `C_shared`", ("tl::tma_store", "C_shared[j / 4"),
    ),
    "no fence behind the initialisation of mbarriers": (
        [(r"tl::fence_mbarrier_init\(\);", "")], "TL736", "the initialisation of the mbarrier",
        ("tl::tma_load", "tl::mbarrier_init(full"),
    ),
    "no barrier behind the initialisation of mbarriers": (
        [(r"tl::sync_threads\(\);", "__syncwarp();")], "TL731", "an initialisation",
        ("", "tl::mbarrier_init"),
    ),
    "a stage is given back before it was read": (
        [(ARRIVE, ""),
         (r"tl::wgmma_wait<0>\(\);", "tl::mbarrier_arrive(empty[k_1 % 2]); tl::wgmma_wait<0>();")],
        "TL731", "a write and a read of",
        ("tl::tma_load", "tl::wgmma_ss"),
    ),
    "matrix instructions that nobody waits for": (
        [(r"tl::wgmma_wait<0>", "tl::wgmma_wait<1>")], "TL734",
        "a read of `d` in `main` while a matrix instruction", ("C_shared[j / 4", "tl::wgmma_ss"),
    ),
    "a stage is read before it came": (
        [(r"tl::mbarrier_wait_parity\(full.*", ";")], "TL734",
        "where an asynchronous copy has not been waited for", ("tl::wgmma_ss", "tl::tma_load"),
    ),
    "a bulk store that nobody waits for": (
        [(r"tl::bulk_wait<0, 0>\(\);", "")], "TL734", "a block of `main` ends while a bulk store",
        ("tl::tma_store",),
    ),
    "the source of a bulk store is overwritten": (
        [(r"tl::bulk_commit\(\);", "tl::bulk_commit(); C_shared[5] = 1.0f;")], "TL734",
        "a write of `C_shared` in `main` while an asynchronous operation has yet to read it",
        ("C_shared[5]", "tl::tma_store"),
    ),
    "an accumulator without a value": (
        [(r"k_1 \+ kk > 0 \? 1 : 0", "1")], "TL732",
        "`d` of `main` is read where the thread has not written it", ("tl::wgmma_ss",),
    ),
    "registers written after the fence": (
        [(r"tl::wgmma_fence\(\);", "tl::wgmma_fence(); if (k_1 == 1) d[3] = 0.0f;")], "TL736",
        "registers that were written after the last wgmma fence", ("tl::wgmma_ss",),
    ),
    "a bulk store before all have written": (
        [(r"tl::sync_threads\(1, 128\);", "")], "TL731", "a read and a write of `C_shared`",
        ("tl::tma_store", "C_shared[j / 4"),
    ),
}  # fmt: skip


SEED, SAMPLE = 20261130, 5
SAMPLED = frozenset(random.Random(SEED).sample(sorted(DAMAGES), SAMPLE))


@pytest.mark.parametrize("name", DAMAGES)
def test_damage(name: str, full: bool) -> None:
    if not full and name not in SAMPLED:
        pytest.skip("runs with --full")
    changes, code, text, sides = DAMAGES[name]
    found = findings(damaged(*changes))
    assert any(
        d.code == code and text in d.message and d.span is not None
        and all(side in became(d) for side in sides) for d in found
    ), [(d.code, d.message, became(d)) for d in found]  # fmt: skip
