"""Are the tiles of the next iteration asked for, once each, while a gemm runs?"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.support.cpu import lower_for_cpu, run_on_cpu


def gemm(stages: bool) -> Any:
    m, n, k, block_k = 64, 96, 256, 32

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), "float32"), B: T.Tensor((k, n), "float32"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((m, block_k), "float32")
            b = T.alloc_shared((block_k, n), "float32")
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            if stages:
                for ko in T.Pipelined(k // block_k, num_stages=2):
                    T.copy(A[0, ko * block_k], a)
                    T.copy(B[ko * block_k, 0], b)
                    T.gemm(a, b, c)
            else:
                for ko in T.serial(k // block_k):
                    T.copy(A[0, ko * block_k], a)
                    T.copy(B[ko * block_k, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C)

    return kernel


def test_only_pipelined_loops_prefetch() -> None:
    pipelined = lower_for_cpu(gemm(True)).script()
    assert "tl_prefetch(A[" in pipelined and "tl_prefetch(B[" in pipelined
    assert "(k + 1) * 32" in pipelined.replace("ko", "k")
    assert "tl_prefetch" not in lower_for_cpu(gemm(False)).script()


def test_no_slot_is_left_behind() -> None:
    for stages in (True, False):
        assert "prefetch_slot" not in lower_for_cpu(gemm(stages)).script()


def test_results_do_not_change() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 256)).astype(np.float32)
    b = rng.standard_normal((256, 96)).astype(np.float32)
    c = np.zeros((64, 96), np.float32)
    run_on_cpu(gemm(True), a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def test_rows_that_a_table_names_are_not_asked_for() -> None:
    """Where they are is read in the copy itself, under the guards that stand there."""
    n, k, block_k = 21, 64, 32

    @T.prim_func
    def gathered(
        X: T.Tensor((n, k), "float32"), order: T.Tensor((n,), "int32"),
        W: T.Tensor((k, 32), "float32"), Y: T.Tensor((n, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 16), threads=64) as bm:
            a = T.alloc_shared((16, block_k), "float32")
            w = T.alloc_shared((block_k, 32), "float32")
            c = T.alloc_fragment((16, 32), "float32")
            T.clear(c)
            for ko in T.Pipelined(k // block_k, num_stages=2):
                for i, j in T.Parallel(16, block_k):
                    at = order[bm * 16 + i]
                    a[i, j] = X[at, ko * block_k + j]
                for i, j in T.Parallel(block_k, 32):
                    row = ko * block_k + i
                    w[i, j] = W[row, j]
                T.gemm(a, w, c)
            T.copy(c, Y[bm * 16, 0])

    script = lower_for_cpu(gathered).script()
    assert "tl_prefetch(X[" not in script and "tl_prefetch(W[" in script
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, k)).astype("f"), rng.standard_normal((k, 32)).astype("f")
    order, y = rng.permutation(n).astype(np.int32), np.zeros((n, 32), "f")
    run_on_cpu(gathered, x, order, w, y)
    np.testing.assert_allclose(y, x[order].astype(np.float64) @ w, rtol=1e-4, atol=1e-4)
