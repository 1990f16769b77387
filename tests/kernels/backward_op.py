"""The gradient of relu(A * B), with B broadcast over rows, and its forward pass."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tl_mul_relu_bcast(A, B, BLOCK_N, BLOCK_M):
    N, M = T.const("N, M")
    dtype = T.float16
    A: T.Tensor((N, M), dtype)
    B: T.Tensor((M,), dtype)
    C = T.empty((N, M), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(M, BLOCK_M), threads=256) as (
        bx,
        by,
    ):
        A_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        B_local = T.alloc_fragment((BLOCK_M,), dtype)
        C_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)

        T.copy(A[bx * BLOCK_N, by * BLOCK_M], A_local)
        T.copy(B[by * BLOCK_M], B_local)
        for i, j in T.Parallel(BLOCK_N, BLOCK_M):
            C_local[i, j] = T.max(A_local[i, j] * B_local[j], 0)
        T.copy(C_local, C[bx * BLOCK_N, by * BLOCK_M])

    return C


@tilelang.jit
def tl_mul_relu_bwd(A, B, dC, BLOCK_N, BLOCK_M):
    N, M = T.const("N, M")
    dtype = T.float16
    A: T.Tensor((N, M), dtype)
    B: T.Tensor((M,), dtype)
    dC: T.Tensor((N, M), dtype)
    dA = T.empty((N, M), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), T.ceildiv(M, BLOCK_M), threads=256) as (
        bx,
        by,
    ):
        A_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        B_local = T.alloc_fragment((BLOCK_M,), dtype)
        dC_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)
        dA_local = T.alloc_fragment((BLOCK_N, BLOCK_M), dtype)

        T.copy(A[bx * BLOCK_N, by * BLOCK_M], A_local)
        T.copy(B[by * BLOCK_M], B_local)
        T.copy(dC[bx * BLOCK_N, by * BLOCK_M], dC_local)
        for i, j in T.Parallel(BLOCK_N, BLOCK_M):
            dA_local[i, j] = T.if_then_else(
                A_local[i, j] * B_local[j] > 0, dC_local[i, j] * B_local[j], 0
            )
        T.copy(dA_local, dA[bx * BLOCK_N, by * BLOCK_M])

    return dA


def _halves(rng, *shapes):
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in shapes)


def inputs_forward(rng, N, M, **_):
    return _halves(rng, (N, M), (M,))


def inputs_backward(rng, N, M, **_):
    return _halves(rng, (N, M), (M,), (N, M))


def reference_forward(a, b, **_):
    return (np.maximum(a * b, 0),)


def reference_backward(a, b, dc, **_):
    # The kernel asks a float16 product: one that rounds to zero lets nothing through.
    return (np.where((a * b).astype(np.float16) > 0, dc * b, 0),)
