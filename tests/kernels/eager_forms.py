"""The eager style: where arguments may be annotated, and what a kernel may return."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm_const_dims(A, B, block_M=32, block_N=32, block_K=16):
    M, N, K = T.const("M N K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


@tilelang.jit
def annotated_in_signature(
    A: T.Tensor((12, 20), T.float32), B: T.Tensor[(12, 20), T.float32], bias=1.5
):
    C = T.empty(12, 20, dtype=T.float32)

    with T.Kernel(12, threads=32) as bx:
        for j in T.Parallel(20):
            C[bx, j] = A[bx, j] * B[bx, j] + bias

    return C


@tilelang.jit
def runtime_scalar(A, scale):
    """``scale`` is annotated with a dtype: it stays a run-time value, not part of the cache key."""
    N = T.const("N")
    A: T.Tensor[N, T.float32]
    scale: T.float32
    B = T.empty((N,), T.float32)

    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * scale

    return B


@tilelang.jit
def several_outputs(A, block=32):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.float32)
    total = T.empty((M,), T.float32)
    largest = T.empty((M,), T.float32)

    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        rows = T.alloc_fragment((block, N), T.float32)
        sums = T.alloc_fragment((block,), T.float32)
        peaks = T.alloc_fragment((block,), T.float32)
        T.copy(A[bx * block, 0], rows)
        T.reduce_sum(rows, sums, dim=-1)
        T.reduce_absmax(rows, peaks, dim=-1)
        T.copy(sums, total[bx * block])
        T.copy(peaks, largest[bx * block])

    return total, largest


@tilelang.jit
def dynamic_rows(A, block=16):
    """Compiled once for every number of rows."""
    N = T.const("N")
    M = T.dynamic("M")
    A: T.Tensor((M, N), T.float32)
    B = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
        for i, j in T.Parallel(block, N):
            B[bx * block + i, j] = A[bx * block + i, j] + 1

    return B


@tilelang.jit
def strided_rows(A):
    M, N, stride = T.const("M, N, stride")
    A: T.StridedTensor((M, N), (stride, 1), T.float32)
    B = T.empty((M, N), T.float32)

    with T.Kernel(M, threads=32) as bx:
        T.copy(A[bx, :], B[bx, :])

    return B


@tilelang.jit
def sum_of_pointed(table, backing):
    """A table of addresses, each that of one row; ``backing`` only keeps the rows alive."""
    count, width = T.const("count, width")
    table: T.Tensor((count,), T.ptr)
    backing: T.Tensor((count, width), T.float32)
    total = T.empty((width,), T.float32)

    with T.Kernel(1, threads=32) as _:
        acc = T.alloc_fragment((width,), T.float32)
        T.clear(acc)
        for p in T.serial(count):
            row = T.make_tensor(table[p], (width,), T.float32)
            for i in T.Parallel(width):
                acc[i] += row[i]
        T.copy(acc, total)

    return total


def inputs_gemm(rng, M, N, K, **_):
    return (
        rng.standard_normal((M, K)).astype(np.float16),
        rng.standard_normal((K, N)).astype(np.float16),
    )


def inputs_signature(rng, **_):
    return tuple(rng.standard_normal((12, 20)).astype(np.float32) for _ in range(2))


def inputs_vector(rng, N, **_):
    return (rng.standard_normal(N).astype(np.float32), 0.75)


def inputs_matrix(rng, M, N, **_):
    return (rng.standard_normal((M, N)).astype(np.float32),)


def inputs_strided(rng, M, N, stride, **_):
    return (rng.standard_normal((M, stride)).astype(np.float32)[:, :N],)


def inputs_pointers(rng, count, width, **_):
    backing = rng.standard_normal((count, width)).astype(np.float32)
    table = np.array([row.ctypes.data for row in backing[::-1]], np.int64)
    return table, backing


def reference_gemm(a, b, **_):
    return (a @ b,)


def reference_signature(a, b, **_):
    return (a * b + 1.5,)


def reference_scale(a, scale, **_):
    return (a * scale,)


def reference_outputs(a, **_):
    return a.sum(axis=1), np.abs(a).max(axis=1)


def reference_increment(a, **_):
    return (a + 1,)


def reference_identity(a, **_):
    return (a,)


def reference_pointers(_table, backing, **_):
    return (backing.sum(axis=0),)
