"""Small kernels, right ones, that tests of the checked mode damage."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T


def gemm(M: int = 64, N: int = 64, K: int = 160, stages: int = 3, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 32), dtype)
            b = T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main


def gemm_inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 160), (160, 64)))
    return a, b, np.zeros((64, 64), np.float32)


def gemm_reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def reverse(N: int = 256) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=N):
            tile = T.alloc_shared((N,), "float32")
            tx = T.get_thread_binding()
            tile[tx] = A[tx]
            T.sync_threads()
            B[tx] = tile[N - 1 - tx]

    return main


def row_sums(M: int = 16, N: int = 512) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=128) as bx:
            row = T.alloc_shared((1, N), "float32")
            part = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], row)
            T.copy(row, part)
            T.reduce_sum(part, total, dim=1)
            T.copy(total, B[bx])

    return main


def handover(count: int = 64, arriving: int = 64) -> Any:
    """One warp waits at barrier 1 for another one."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            tile[tx] = A[tx]
            if tx < arriving:
                T.sync_threads(1, count)
            B[tx] = tile[tx]

    return main
