"""Row sums: one tile that holds whole rows, then column tiles accumulated in two ways."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tl_reduce_sum_single_pass(A, BLOCK_N, BLOCK_M):
    N, M = T.const("N, M")
    dtype = T.float32
    A: T.Tensor((N, M), dtype)
    B = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=128) as bx:
        A_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        B_local = T.alloc_fragment((BLOCK_N,), dtype)

        T.copy(A[bx * BLOCK_N, 0], A_local)
        T.reduce_sum(A_local, B_local, dim=1)
        T.copy(B_local, B[bx * BLOCK_N])

    return B


@tilelang.jit
def tl_reduce_sum(A, BLOCK_N, BLOCK_M):
    N, M = T.const("N, M")
    dtype = T.float32
    A: T.Tensor((N, M), dtype)
    B = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=128) as bx:
        A_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        B_local = T.alloc_fragment((BLOCK_N,), dtype)

        T.clear(B_local)
        for k in T.Pipelined(T.ceildiv(M, BLOCK_M), num_stages=2):
            T.copy(A[bx * BLOCK_N, k * BLOCK_M], A_local)
            T.reduce_sum(A_local, B_local, dim=1, clear=False)
        T.copy(B_local, B[bx * BLOCK_N])

    return B


@tilelang.jit
def tl_reduce_sum_accumulator(A, BLOCK_N, BLOCK_M):
    N, M = T.const("N, M")
    dtype = T.float32
    A: T.Tensor((N, M), dtype)
    B = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=128) as bx:
        A_shared = T.alloc_shared((BLOCK_N, BLOCK_M), dtype)
        acc = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        B_local = T.alloc_fragment((BLOCK_N,), dtype)

        T.fill(acc, 0.0)
        for k in T.serial(T.ceildiv(M, BLOCK_M)):
            T.copy(A[bx * BLOCK_N, k * BLOCK_M], A_shared)
            for i, j in T.Parallel(BLOCK_N, BLOCK_M):
                acc[i, j] += A_shared[i, j]
        T.reduce_sum(acc, B_local)
        T.copy(B_local, B[bx * BLOCK_N])

    return B


def inputs(rng, N, M, **_):
    return (rng.random((N, M), dtype=np.float32),)


def reference(a, **_):
    return (a.sum(axis=1),)
