"""Transposes a matrix tile by tile through shared memory."""

import numpy as np

import tilelang.language as T


def transpose_tiles(M, N, block_M, block_N, dtype=T.float16):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared((block_M, block_N), dtype)
            B_shared = T.alloc_shared((block_N, block_M), dtype)

            T.copy(A[by * block_M, bx * block_N], A_shared)
            T.transpose(A_shared, B_shared)
            T.copy(B_shared, B[bx * block_N, by * block_M])

    return main


def transpose_batched(batch, M, N, dtype=T.float32):
    """The last two axes swap; leading ones stay."""

    @T.prim_func
    def main(A: T.Tensor((batch, M, N), dtype), B: T.Tensor((batch, N, M), dtype)):
        with T.Kernel(1, threads=128) as _:
            A_shared = T.alloc_shared((batch, M, N), dtype)
            B_shared = T.alloc_shared((batch, N, M), dtype)
            T.copy(A, A_shared)
            T.transpose(A_shared, B_shared)
            T.copy(B_shared, B)

    return main


def inputs(rng, M, N, **_):
    return (rng.standard_normal((M, N)).astype(np.float16),)


def inputs_batched(rng, batch, M, N, **_):
    return (rng.standard_normal((batch, M, N)).astype(np.float32),)


def reference(a, **_):
    return (np.swapaxes(a, -1, -2),)
