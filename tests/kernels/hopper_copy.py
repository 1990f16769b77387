"""Tiles that the copy engine of Hopper moves: in, doubled in shared memory, and out again."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tma_double(A, block_M, block_N, dtype=T.float16):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), dtype)
    B = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        tile = T.alloc_shared((block_M, block_N), dtype)
        doubled = T.alloc_shared((block_M, block_N), dtype)
        full = T.alloc_barrier(128)
        T.tma_copy(A[by * block_M, bx * block_N], tile, barrier=full)
        T.barrier_arrive(full)
        T.barrier_wait(full, 0)
        for i, j in T.Parallel(block_M, block_N):
            doubled[i, j] = tile[i, j] * 2
        # Beyond the edge there is nothing to write.
        T.tma_copy(doubled, B[by * block_M, bx * block_N])

    return B


def inputs(rng, M, N, dtype=T.float16, **_):
    values = rng.standard_normal((M, N))
    return (values.astype(np.float32 if dtype == T.float32 else np.float16),)


def reference(a, **_):
    return (2 * a,)
