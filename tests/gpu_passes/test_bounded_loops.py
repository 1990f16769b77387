"""Loops whose limits are those of other loops: what their threads touch is told apart."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import source_of
from tilelang.language.primfunc import PrimFunc


@T.prim_func
def sorted_row(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        tid = T.get_thread_binding()
        k = T.alloc_shared((64,), "float32")
        T.copy(A, k)
        for stage in range(1, 7):
            for step in range(stage - 1, -1, -1):
                stride = 1 << step
                left = tid // stride * (2 * stride) + tid % stride
                right = left + stride
                if (k[left] > k[right]) == ((left >> stage) & 1 == 0):
                    before = k[left]
                    k[left] = k[right]
                    k[right] = before
        T.copy(k, A)


@T.prim_func
def own_columns(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=128):
        tid = T.get_thread_binding()
        a = T.alloc_shared((32, 32), "float32")
        b = T.alloc_shared((32, 32), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.sync_threads()
        if tid < 32:
            for i in T.serial(1, 32):
                for j in T.serial(i):
                    b[i, tid] -= a[i, j] * b[j, tid]
        T.sync_threads()
        T.copy(b, B)


def shifting(by: int) -> PrimFunc:
    @T.prim_func
    def triangle(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            tid = T.get_thread_binding()
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            T.sync_threads()
            if tid < 32:
                for i in T.serial(1, 32):
                    for j in T.serial(i):
                        a[i, tid] += a[j, (tid + by) % 32]
            T.sync_threads()
            T.copy(a, A)

    return triangle


def inner_barriers(kernel: Any) -> int:
    """Barriers that stand inside of a loop, those of some threads included."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = source_of(kernel.function).text
    return sum(
        line.startswith(" " * 4) and ("sync_threads(" in line or "sync_warp(" in line)
        for line in text.splitlines()
    )


def test_pairs_of_a_sort_are_kept_apart_once_a_step() -> None:
    # And once a stage: that its first step ends before the next begins is not found out.
    assert inner_barriers(sorted_row) == 2


@pytest.mark.parametrize(("kernel", "barriers"), [(own_columns, 0), (shifting(0), 0)])
def test_who_stays_in_a_column_waits_for_nobody(kernel: PrimFunc, barriers: int) -> None:
    assert inner_barriers(kernel) == barriers


def test_who_reads_the_next_column_waits() -> None:
    assert inner_barriers(shifting(1)) >= 1
