"""Fp16 activations times packed 4-bit weights with zero point 8, expanded inside the K loop."""

import numpy as np

import tilelang
import tilelang.language as T

ZERO_POINT = 8


@tilelang.jit
def tl_dequant_matmul(A, B, BLOCK_M, BLOCK_N, BLOCK_K):
    # N is no dimension of an input, only half of it is: the caller names it.
    M, N, K = T.const("M, N, K")
    A_dtype = T.float16
    B_storage_dtype = T.uint8
    accum_dtype = T.float32
    A: T.Tensor((M, K), A_dtype)
    B: T.Tensor((K, N // 2), B_storage_dtype)
    C = T.empty((M, N), A_dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(M, BLOCK_M), threads=128) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((BLOCK_M, BLOCK_K), A_dtype)
        B_packed = T.alloc_shared((BLOCK_K, BLOCK_N // 2), B_storage_dtype)
        B_shared = T.alloc_shared((BLOCK_K, BLOCK_N), A_dtype)
        C_local = T.alloc_fragment((BLOCK_M, BLOCK_N), accum_dtype)

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, BLOCK_K), num_stages=2):
            T.copy(A[by * BLOCK_M, k * BLOCK_K], A_shared)
            T.copy(B[k * BLOCK_K, bx * (BLOCK_N // 2)], B_packed)
            for i, j in T.Parallel(BLOCK_K, BLOCK_N):
                nibble = (B_packed[i, j // 2] >> T.cast(j % 2 * 4, B_storage_dtype)) & 15
                B_shared[i, j] = T.cast(nibble, A_dtype) - ZERO_POINT
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * BLOCK_M, bx * BLOCK_N])

    return C


def inputs(rng, M, N, K, **_):
    a = rng.standard_normal((M, K)).astype(np.float16)
    return a, rng.integers(0, 256, (K, N // 2)).astype(np.uint8)


def reference(a, b, **_):
    weights = np.stack([b & 15, b >> 4], axis=-1).reshape(len(b), -1).astype(np.float64)
    return (a @ (weights - ZERO_POINT),)
