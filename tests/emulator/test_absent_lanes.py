"""A shuffle that reads a lane which takes no part gets what is undefined (PTX ISA, shfl.sync)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError

pytestmark = needs_compiler


@T.prim_func
def in_a_branch(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        v = A[t]
        if t % 32 < 16:
            B[t] = T.shfl_xor(v, 16)


@T.prim_func
def by_index(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        v = A[t]
        if t % 32 < 16:
            B[t] = T.shfl_sync(v, t % 32 + 16)


@T.prim_func
def not_in_the_mask(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        v = A[t]
        if t % 32 < 16:
            B[t] = T.shfl_xor(v, 16, mask=0xFFFF)


@T.prim_func
def no_such_thread(A: T.Tensor((48,), "float32"), B: T.Tensor((48,), "float32")):
    with T.Kernel(1, threads=48):
        t = T.get_thread_binding()
        B[t] = T.shfl_xor(A[t], 16)


@T.prim_func
def half_a_warp(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        v = A[t]
        if t % 32 < 16:
            B[t] = T.shfl_xor(v, 8, mask=0xFFFF)


def found(prim_func: Any, size: int = 64) -> list[tuple[str, str]]:
    kernel = tilelang.compile(
        prim_func, target=TARGET, execution_backend=Emulator(check=True)
    )  # fmt: skip
    try:
        kernel(np.arange(size, dtype=np.float32), np.zeros(size, np.float32))
    except CompileError as error:
        assert kernel.checked is not None
        return [(d.code, d.message) for d in error.diagnostics]
    return []


@pytest.mark.parametrize(
    ("prim_func", "size", "reads", "why"),
    [
        (in_a_branch, 64, "lane 0 reads lane 16", "lane 16 went another way, or has ended"),
        (by_index, 64, "lane 0 reads lane 16", "lane 16 went another way, or has ended"),
        (not_in_the_mask, 64, "lane 0 reads lane 16", "the mask leaves lane 16 out"),
        (no_such_thread, 48, "lane 0 reads lane 16", "the block has no such thread"),
    ],
)
def test_a_lane_that_takes_no_part(prim_func: Any, size: int, reads: str, why: str) -> None:
    ((code, message),) = found(prim_func, size)
    assert code == "TL510"
    assert message.startswith(f"{reads}, which does not take part") and message.endswith(why)


def test_those_that_take_part_are_enough() -> None:
    assert found(half_a_warp) == []


@pytest.mark.parametrize("threads", [32, 33, 48, 64, 96])
def test_reductions_of_the_compiler(threads: int) -> None:
    @T.prim_func
    def sums(A: T.Tensor((threads, 8), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((threads, 8), "float32")
            b = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=0)
            T.copy(b, B)

    kernel = tilelang.compile(sums, target=TARGET, execution_backend=Emulator(check=True))
    a, b = np.ones((threads, 8), np.float32), np.zeros(8, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, threads)
