"""Vector add, then a product fused with ReLU, without and with register tiles."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tl_add_1d(A, B, BLOCK_N):
    N = T.const("N")
    A: T.Tensor((N,), T.float16)
    B: T.Tensor((N,), T.float16)
    C = T.empty((N,), T.float16)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=256) as bx:
        for i in T.Parallel(BLOCK_N):
            C[bx * BLOCK_N + i] = A[bx * BLOCK_N + i] + B[bx * BLOCK_N + i]

    return C


@tilelang.jit
def tl_mul_relu_1d(A, B, BLOCK_N):
    N = T.const("N")
    A: T.Tensor((N,), T.float16)
    B: T.Tensor((N,), T.float16)
    C = T.empty((N,), T.float16)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=256) as bx:
        base = bx * BLOCK_N
        for i in T.Parallel(BLOCK_N):
            product = A[base + i] * B[base + i]
            C[base + i] = T.if_then_else(product > 0, product, 0)

    return C


@tilelang.jit
def tl_mul_relu_1d_mem(A, B, BLOCK_N):
    N = T.const("N")
    dtype = T.float16
    A: T.Tensor((N,), dtype)
    B: T.Tensor((N,), dtype)
    C = T.empty((N,), dtype)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=256) as bx:
        A_local = T.alloc_fragment((BLOCK_N,), dtype)
        B_local = T.alloc_fragment((BLOCK_N,), dtype)
        C_local = T.alloc_fragment((BLOCK_N,), dtype)

        T.copy(A[bx * BLOCK_N], A_local)
        T.copy(B[bx * BLOCK_N], B_local)
        for i in T.Parallel(BLOCK_N):
            C_local[i] = T.max(A_local[i] * B_local[i], 0)
        T.copy(C_local, C[bx * BLOCK_N])

    return C


def inputs(rng, N, **_):
    return tuple(rng.standard_normal(N).astype(np.float16) for _ in range(2))


def reference_add(a, b, **_):
    return (a + b,)


def reference_mul_relu(a, b, **_):
    return (np.maximum(a * b, 0),)
