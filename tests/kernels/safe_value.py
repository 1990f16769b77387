"""A tile copied from above the first row: what lies outside reads as a value of the user's."""

import numpy as np

import tilelang.language as T


def shifted_copy(M, N, block_M, block_N, shift, pad_value, dtype=T.float32):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared((block_M, block_N), dtype)
            T.annotate_safe_value({A: pad_value})

            T.copy(A[by * block_M - shift, bx * block_N], A_shared)
            for i, j in T.Parallel(block_M, block_N):
                B[by * block_M + i, bx * block_N + j] = A_shared[i, j]

    return main


def inputs(rng, M, N, **_):
    return (rng.standard_normal((M, N)).astype(np.float32),)


def reference(a, shift, pad_value, **_):
    shifted = np.full_like(a, pad_value)
    shifted[shift:] = a[:-shift]
    return (shifted,)
