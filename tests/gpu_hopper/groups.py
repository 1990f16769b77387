"""Warp groups by hand: what each does with its own threads, and what they hand to each other."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def turned(steps: int) -> Any:
    """One group loads, the other turns each tile in shared memory of its own and stores it."""

    @T.prim_func
    def main(A: T.Tensor((steps * 64, 64), "float32"), B: T.Tensor((steps * 64, 64), "float32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((64, 64), "float32")
            full = T.alloc_barrier(128)
            free = T.alloc_barrier(128)
            for k in range(steps):
                with T.ws(1):
                    T.barrier_wait(free, (k & 1) ^ 1)
                    T.copy(A[k * 64, 0], S)
                    T.barrier_arrive(full)
                with T.ws(0):
                    T.barrier_wait(full, k & 1)
                    for i, j in T.Parallel(64, 64):
                        R[j, i] = S[i, j]
                    T.barrier_arrive(free)
                    T.copy(R, B[k * 64, 0])

    return main


def reduced(steps: int) -> Any:
    """Reductions within a group, through shared memory that only it uses."""

    @T.prim_func
    def main(A: T.Tensor((steps, 64, 64), "float32"), B: T.Tensor((steps, 64), "float32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((2, 64, 64), "float32")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            tile = T.alloc_fragment((64, 64), "float32")
            sums = T.alloc_fragment((64,), "float32")
            with T.ws(1):
                for k in range(steps):
                    T.barrier_wait(free[k % 2], ((k // 2) & 1) ^ 1)
                    T.tma_copy(A[k, :, :], S[k % 2, :, :], barrier=full[k % 2])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in range(steps):
                    T.barrier_wait(full[k % 2], (k // 2) & 1)
                    T.copy(S[k % 2, :, :], tile)
                    T.barrier_arrive(free[k % 2])
                    T.reduce_sum(tile, sums, dim=0)
                    for i, j in T.Parallel(64, 64):
                        tile[i, j] = tile[i, j] - sums[j] / 64
                    T.reduce_max(tile, sums, dim=0)
                    T.copy(sums, B[k, :])

    return main


def halves(K: int) -> Any:
    """Two groups with `T.gemm` on half of the rows each, fed by a third by ordinary copies."""

    @T.prim_func
    def main(
        A: T.Tensor((128, K), "float16"), B: T.Tensor((K, 128), "float16"),
        C: T.Tensor((128, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=384) as bx:
            A_s = T.alloc_shared((2, 128, 32), "float16")
            B_s = T.alloc_shared((2, 32, 128), "float16")
            upper = T.alloc_fragment((64, 128), "float32")
            lower = T.alloc_fragment((64, 128), "float32")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([256, 256])
            with T.ws(2):
                for k in range(K // 32):
                    T.barrier_wait(free[k % 2], ((k // 2) & 1) ^ 1)
                    T.copy(A[0:128, k * 32 : k * 32 + 32], A_s[k % 2, :, :])
                    T.copy(B[k * 32 : k * 32 + 32, 0:128], B_s[k % 2, :, :])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(upper)
                for k in range(K // 32):
                    T.barrier_wait(full[k % 2], (k // 2) & 1)
                    T.gemm(A_s[k % 2, 0:64, :], B_s[k % 2, :, :], upper)
                    T.barrier_arrive(free[k % 2])
                T.copy(upper, C[0:64, :])
            with T.ws(1):
                T.clear(lower)
                for k in range(K // 32):
                    T.barrier_wait(full[k % 2], (k // 2) & 1)
                    T.gemm(A_s[k % 2, 64:128, :], B_s[k % 2, :, :], lower)
                    T.barrier_arrive(free[k % 2])
                T.copy(lower, C[64:128, :])

    return main


def pipelined(M: int, N: int, K: int, stages: int) -> Any:
    """Products of warp groups in a pipeline of ordinary asynchronous copies."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((64, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 64, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.wgmma_gemm(A_s, B_s, C_l)
                T.wait_wgmma(0)
            T.copy(C_l, C[by * 64, bx * 128])

    return main


def turned_inputs(rng: np.random.Generator, steps: int, **_: Any) -> tuple[Any, ...]:
    return (rng.standard_normal((steps * 64, 64)).astype(np.float32),)


def turned_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    return (a.reshape(-1, 64, 64).transpose(0, 2, 1).reshape(a.shape),)


def reduced_inputs(rng: np.random.Generator, steps: int, **_: Any) -> tuple[Any, ...]:
    return (rng.standard_normal((steps, 64, 64)).astype(np.float32),)


def reduced_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    return ((a - a.mean(1, keepdims=True)).max(1),)


def product_inputs(
    rng: np.random.Generator, K: int, M: int = 128, N: int = 128, **_: Any
) -> tuple[Any, ...]:
    return tuple(rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))


def product_reference(a: Any, b: Any, **_: Any) -> tuple[Any, ...]:
    return (a @ b,)


def _case(name: str, make: Any, inputs: Any, reference: Any, **params: Any) -> KernelCase:
    return KernelCase(
        name=f"groups_{name}", row="groups", tier=4, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=params, out_idx=(-1,), targets=("cuda:sm_90a",),
    )  # fmt: skip


CASES: tuple[KernelCase, ...] = (
    _case("turned", turned, turned_inputs, turned_reference, steps=7),
    _case("reduced", reduced, reduced_inputs, reduced_reference, steps=5),
    _case("halves", halves, product_inputs, product_reference, K=160),
    *(
        _case(f"pipelined_{stages}", pipelined, product_inputs, product_reference, M=100, N=200,
              K=328, stages=stages)
        for stages in (2, 3)
    ),
)  # fmt: skip
