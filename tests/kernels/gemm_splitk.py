"""A matrix product whose K is split over the grid; the parts are added into C atomically."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(
    A,
    B,
    C,
    block_M,
    block_N,
    block_K,
    split_k,
    dtype=T.float16,
    accum_dtype=T.float32,
    out_dtype=T.float32,
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C: T.Tensor((M, N), out_dtype)
    # Whole K tiles per part, so that no part reads into the next one.
    part = T.ceildiv(K, block_K * split_k)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=128) as (
        bx,
        by,
        bz,
    ):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), out_dtype)

        T.clear(C_local)
        for ko in T.Pipelined(part, num_stages=0):
            T.copy(A[by * block_M, (bz * part + ko) * block_K], A_shared)
            T.copy(B[(bz * part + ko) * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C_shared)
        T.atomic_add(C[by * block_M, bx * block_N], C_shared)


@tilelang.jit
def matmul_elementwise(A, B, C, block_M, block_N, block_K, split_k):
    """The same with one atomic update per element, and bounds written by the user."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C: T.Tensor((M, N), T.float32)
    part = T.ceildiv(K, block_K * split_k)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=128) as (
        bx,
        by,
        bz,
    ):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(C_local)
        for ko in T.Pipelined(part, num_stages=2):
            T.copy(A[by * block_M, (bz * part + ko) * block_K], A_shared)
            T.copy(B[(bz * part + ko) * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            if by * block_M + i < M and bx * block_N + j < N:
                T.atomic_add(C[by * block_M + i, bx * block_N + j], C_local[i, j])


def inputs(rng, M, N, K, **_):
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    return a, b, np.zeros((M, N), np.float32)


def reference(a, b, _c, **_):
    return (a @ b,)
