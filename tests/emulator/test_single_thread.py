"""What a kernel does outside of parallel loops happens once per block, whoever reads it.

The answer of the CPU, which runs a block in one go, is the meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, TARGET

N = 40


def counter_in_shared_memory() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((1,), "int32")
            S[0] = 7
            for i in range(N):
                S[0] = S[0] + A[i]
            for i in T.Parallel(N):
                B[i] = S[0] + i

    return main


def branches() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            for i in range(N):
                if B[0] > 3:
                    B[0] = B[0] - A[i]
                else:
                    B[0] = B[0] + 2
                if B[1] < B[0]:
                    B[1] = A[i]

    return main


def while_loop() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((1,), "int32")
            S[0] = 1
            while S[0] < 1000:
                S[0] = S[0] * 2 + A[0]
            for i in T.Parallel(N):
                B[i] = S[0] - i

    return main


def while_around_parallel() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((1,), "int32")
            S[0] = 1
            while S[0] < 5:
                for i in T.Parallel(N):
                    B[i] = B[i] * S[0] + A[i]
                S[0] = S[0] + 1

    return main


def through_a_local() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_var("int32", 0)
            for i in range(N):
                x = B[0] + A[i]
                B[0] = x + 1
                y = B[1]
                B[1] = y + x

    return main


@T.macro
def bump(target: T.Ref, amount):
    target += amount


def macros() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            for i in range(N):
                bump(B[i % 4], A[i])
                if A[i] > 0:
                    bump(B[i % 4 + 4], 3)

    return main


def running_sum() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((N + 1,), "int32")
            S[0] = 0
            for i in range(N):
                S[i + 1] = S[i] + A[i]
            for i in T.Parallel(N):
                B[i] = S[i + 1]

    return main


def with_a_fragment() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((N,), "int32")
            T.copy(A, F)
            for i in T.Parallel(N):
                F[i] = F[i] * 3
            B[0] = B[0] + F[37]
            B[0] = B[0] * F[2]
            for i in range(N):
                B[1] = B[1] + F[i]

    return main


def swaps() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            low = T.alloc_var("int32", 0)
            high = T.alloc_var("int32", N - 1)
            T.copy(A, B)
            while low < high:
                B[low], B[high] = B[high], B[low]
                low += 1
                high -= 1
            first = last = B[0]
            B[0] = first + last + 2

    return main


def parallel_and_serial_by_turns() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((N,), "int32")
            total = T.alloc_shared((1,), "int32")
            total[0] = 0
            T.copy(A, S)
            for k in range(N):
                for i in T.Parallel(N):
                    S[i] = S[i] + total[0] % 5
                total[0] = total[0] + S[k]
            for i in T.Parallel(N):
                B[i] = total[0] + S[i]

    return main


def left_early() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            for i in range(1, N):
                if B[0] > 20:
                    break
                B[0] = B[0] + A[i] % 3
                B[i] = B[0]

    return main


def every_block_its_own() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(N // 8, threads=64) as bx:
            for i in range(1, 8):
                B[bx * 8 + i] = B[bx * 8 + i - 1] + A[bx * 8 + i]
            for i in T.Parallel(8):
                B[bx * 8 + i] = B[bx * 8 + i] + 1
            for i in range(1, 8):
                B[bx * 8] = B[bx * 8] + B[bx * 8 + i]

    return main


def as_many_as_there_were() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((1,), "int32")
            S[0] = 10
            for i in range(S[0]):
                S[0] = S[0] - A[i]
            B[0] = S[0]
            for i in T.Parallel(N):
                for k in range(B[i]):
                    B[i] = B[i] + k

    return main


def each_thread_adds() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            T.atomic_add(B[0], A[0])
            B[1] = B[1] + 1

    return main


KERNELS: tuple[Callable[[], Any], ...] = (
    counter_in_shared_memory, branches, while_loop, while_around_parallel, through_a_local, macros,
    running_sum, with_a_fragment, swaps, parallel_and_serial_by_turns, left_early,
    every_block_its_own, as_many_as_there_were, each_thread_adds,
)  # fmt: skip


def inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.integers(1, 9, N, dtype=np.int32), rng.integers(0, 5, N, dtype=np.int32)


@needs_compiler
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", KERNELS, ids=lambda make: make.__name__)
def test_happens_once(make: Callable[[], Any], mode: str, full: bool) -> None:
    if not full and mode not in ("shuffle:1", "check"):
        pytest.skip("runs with --full")
    a, expected = inputs()
    tilelang.compile(make(), target="cpu")(a, expected)
    _, got = inputs()
    tilelang.compile(make(), target=TARGET, execution_backend=MODES[mode])(a, got)
    np.testing.assert_array_equal(got, expected)
