"""`T.tvm_thread_allreduce`: what the threads along an axis have, combined, on CPU and GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, TARGET
from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel


def gemv(N: int, K: int, block_N: int, reduce_threads: int) -> Any:
    """A product with a vector, a row per x and a part of it per y, as in tutorials of 2024."""
    tile_K = 8
    block_K = reduce_threads * tile_K

    @T.prim_func
    def main(
        A: T.Tensor((K,), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=(block_N, reduce_threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            A_local = T.alloc_local((tile_K,), "float16")
            B_local = T.alloc_local((tile_K,), "float16")
            part = T.alloc_local((1,), "float32")
            T.clear(part)
            for bk in T.serial(T.ceildiv(K, block_K)):
                for k in T.vectorized(tile_K):
                    A_local[k] = A[bk * block_K + tk * tile_K + k]
                    B_local[k] = B[bn * block_N + tn, bk * block_K + tk * tile_K + k]
                for k in T.serial(tile_K):
                    part[0] += A_local[k].astype("float32") * B_local[k].astype("float32")
            total = T.alloc_local((1,), "float32")
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast("float32", 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tk, dtype="handle")
                )
            C[bn * block_N + tn] = total[0]

    return main


def results(kernel: Any, *arrays: np.ndarray) -> dict[str, np.ndarray]:
    """What the last array holds after a run on the CPU, and in two modes of the emulator."""
    found = {}
    for mode in ("cpu", "shuffle:1", "check"):
        copies = [array.copy() for array in arrays]
        if mode == "cpu":
            tilelang.compile(kernel, target="cpu")(*copies)
        else:
            emulator = MODES[mode]
            tilelang.compile(kernel, target=TARGET, execution_backend=emulator)(*copies)
        found[mode] = copies[-1]
    return found


@needs_compiler
@pytest.mark.parametrize(
    ("block_N", "threads"),
    [(2, 16), (1, 32), (4, 32), (16, 4), (5, 12), (64, 1)],  # lanes of a warp, and not
)
def test_gemv(block_N: int, threads: int) -> None:
    rng = np.random.default_rng(block_N)
    N, K = 4 * block_N, 16 * threads + 8
    a = rng.standard_normal(K).astype(np.float16)
    b = rng.standard_normal((N, K)).astype(np.float16)
    expected = b.astype(np.float64) @ a.astype(np.float64)
    kernel = gemv(N, K, block_N, threads)
    for got in results(kernel, a, b, np.zeros(N, np.float32)).values():
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@needs_compiler
@pytest.mark.parametrize("shape", [(4, 8), (3, 5), (32, 4)])
def test_other_ways_to_combine(shape: tuple[int, int]) -> None:
    """The largest of some over all threads, in a loop, into a number."""
    X, Y = shape

    @T.prim_func
    def main(A: T.Tensor((3, Y, X), "int32"), B: T.Tensor((3, Y, X), "int32")):
        with T.Kernel(1, threads=(X, Y)):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            best = T.alloc_var("int32", 0)
            for k in T.serial(3):
                with T.attr(
                    T.comm_reducer(lambda x, y: T.max(x, y), [T.int32(-1000)]),
                    "reduce_scope",
                    T.reinterpret(T.uint64(0), dtype="handle"),
                ):
                    even = A[k, ty, tx] % 2 == 0
                    T.tvm_thread_allreduce(1, A[k, ty, tx], even, best, tx, ty, dtype="handle")
                B[k, ty, tx] = best + ty

    a = np.random.default_rng(1).integers(-50, 50, (3, Y, X)).astype(np.int32)
    best = np.where(a % 2 == 0, a, -1000).max(axis=(1, 2))
    expected = best[:, None, None] + np.arange(Y)[None, :, None] + np.zeros((1, 1, X), np.int32)
    for got in results(main, a, np.zeros_like(a)).values():
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "body",
    [
        """
        s = T.alloc_local((1,), "float32")
        T.tvm_thread_allreduce(1, A[0], True, s[0], bx)
      # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] does not know how to combine
        """,
        """
        s = T.alloc_local((1,), "float32")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):
            T.tvm_thread_allreduce(1, A[0], True, s[0], bx)
            #                                           ^^ error[TL117] is no axis of the threads
        """,
        """
        s = T.alloc_local((1,), "float32")
        with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):
            T.tvm_thread_allreduce(1, A[0], True, 1.0, T.get_thread_binding())
            #                                     ^^^ error[TL116] is no element of a buffer
        """,
        """
        with T.attr(0, "reduce_scope", 0):
        #    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] is about no `T.comm_reducer`
            A[0] = 1
        """,
    ],
)
def test_mistakes(body: str) -> None:
    check_diagnostics(in_kernel(body))
