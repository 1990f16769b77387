"""Tuning picks a working config, keeps the reasons of the others, and can be skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tilelang_diagnostics import CompileError

CONFIGS = [{"block": 16}, {"block": 64}]


@tilelang.autotune(configs=CONFIGS, warmup=1, rep=2)
@tilelang.jit(out_idx=[1])
def doubled(n: int, block: int = 32) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2

    return main


@tilelang.autotune(configs=[{"block": 0}, {"block": 32}], warmup=1, rep=2)
@tilelang.jit
def tripled(A, block=16):
    (n,) = (T.const("n"),)
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, block), threads=max(block, 1)) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 3
    return B


@tilelang.autotune(configs=[{"threads": 0}, {"threads": 4096}, {"threads": -1}])
@tilelang.jit(out_idx=[1])
def hopeless(n, threads=128):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(n):
                B[i] = A[i]

    return main


def test_the_fastest_kernel_is_returned_with_its_config() -> None:
    kernel = doubled(100)
    assert kernel.config in CONFIGS
    assert kernel.latency > 0
    assert {t.latency is not None for t in doubled.trials} == {True}
    a = np.arange(100, dtype="float32")
    np.testing.assert_array_equal(kernel(a), a * 2)
    assert doubled(100) is kernel


def test_explicit_values_skip_tuning() -> None:
    kernel = doubled(100, block=8)
    assert kernel.config is None


def test_a_bad_config_is_left_out() -> None:
    a = np.arange(50, dtype="float32")
    np.testing.assert_array_equal(tripled(a), a * 3)
    failed = [t for t in tripled.trials if t.latency is None]
    assert [dict(t.config) for t in failed] == [{"block": 0}]


def test_when_nothing_works_every_reason_is_told() -> None:
    with pytest.raises(CompileError) as raised:
        hopeless(16)
    (found,) = raised.value.diagnostics
    assert found.code == "TL724"
    assert "TL164 ×3" in found.message
    assert any("'threads': 4096" in note for note in found.notes)
