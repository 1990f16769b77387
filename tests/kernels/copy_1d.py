"""Copies a vector from global to global memory under three launch shapes."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tl_copy_1d_serial(A):
    N = T.const("N")
    A: T.Tensor((N,), T.float16)
    B = T.empty((N,), T.float16)

    with T.Kernel(1, threads=1) as _:
        T.copy(A, B)

    return B


@tilelang.jit
def tl_copy_1d_multi_threads(A):
    N = T.const("N")
    A: T.Tensor((N,), T.float16)
    B = T.empty((N,), T.float16)

    with T.Kernel(1, threads=256) as _:
        T.copy(A, B)

    return B


@tilelang.jit
def tl_copy_1d_parallel(A, BLOCK_N):
    N = T.const("N")
    A: T.Tensor((N,), T.float16)
    B = T.empty((N,), T.float16)

    with T.Kernel(T.ceildiv(N, BLOCK_N), threads=256) as bx:
        start = bx * BLOCK_N
        T.copy(A[start : start + BLOCK_N], B[start : start + BLOCK_N])

    return B


def inputs(rng, N, **_):
    return (rng.standard_normal(N).astype(np.float16),)


def reference(a, **_):
    return (a,)
