"""Tiled matrix products, one file for every way users write the plain one."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul_relu(A, B, block_M, block_N, block_K):
    """The quickstart: ReLU on the accumulator before it leaves the registers."""
    M, N, K = T.const("M, N, K")
    dtype = T.float16
    accum_dtype = T.float32
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.use_swizzle(panel_size=10, enable=True)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            for k, j in T.Parallel(block_K, block_N):
                B_shared[k, j] = B[ko * block_K + k, bx * block_N + j]
            T.gemm(A_shared, B_shared, C_local)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


@tilelang.jit
def matmul(A, B, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


@tilelang.jit(out_idx=-1)
def matmul_lazy(M, N, K, block_M, block_N, block_K, trans_A=False, trans_B=False, num_stages=2):
    """fp16 operands, fp32 result, each operand stored either way round."""
    dtype, accum_dtype = T.float16, T.float32
    A_shape = (K, M) if trans_A else (M, K)
    B_shape = (N, K) if trans_B else (K, N)
    A_tile = (block_K, block_M) if trans_A else (block_M, block_K)
    B_tile = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, dtype),
        B: T.Tensor(B_shape, dtype),
        C: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared(A_tile, dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def matmul_prim_func(M, N, K, block_M, block_N, block_K, dtype=T.float32, accum_dtype=T.float32):
    """The form a CPU user writes: no pipelining, tiles in local memory."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            A_local = T.alloc_local((block_M, block_K), dtype)
            B_local = T.alloc_local((block_K, block_N), dtype)
            C_local = T.alloc_local((block_M, block_N), accum_dtype)

            for p in T.serial(block_M):
                for w in T.serial(block_N):
                    C_local[p, w] = 0

            for ko in T.serial(T.ceildiv(K, block_K)):
                for i in T.serial(block_M):
                    for k in T.serial(block_K):
                        A_local[i, k] = A[by * block_M + i, ko * block_K + k]
                for k in T.serial(block_K):
                    for j in T.serial(block_N):
                        B_local[k, j] = B[ko * block_K + k, bx * block_N + j]
                for i in T.serial(block_M):
                    for j in T.serial(block_N):
                        for k in T.serial(block_K):
                            C_local[i, j] += A_local[i, k] * B_local[k, j]

            for i in T.serial(block_M):
                for j in T.serial(block_N):
                    C[by * block_M + i, bx * block_N + j] = C_local[i, j]

    return main


def matmul_scheduled(M, N, K, block_M, block_N, block_K, stage, order, dtype=T.float16):
    """The stage and place of each statement of the loop written by hand."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), order=order, stage=stage):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


scheduled = tilelang.jit(out_idx=[2])(matmul_scheduled)


@tilelang.jit(out_idx=[-1])
def matmul_block_sparse(M, N, K, block_M, block_N, block_K, num_stages, dtype=T.float16):
    """Tiles of the product whose mask is off are neither read nor multiplied."""
    mask_shape = (T.ceildiv(M, block_M), T.ceildiv(N, block_N), T.ceildiv(K, block_K))

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        BlockMask: T.Tensor(mask_shape, "bool"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            C_shared = T.alloc_shared((block_M, block_N), dtype)

            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                if BlockMask[by, bx, k]:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


def matmul_padded(M, N, K, block_M, block_N, block_K, padding, dtype=T.float16):
    """Shared rows are longer than the tile: the product takes a region of each buffer."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
            bx,
            by,
        ):
            A_shared = T.alloc_shared((block_M, block_K + padding), dtype)
            B_shared = T.alloc_shared((block_K, block_N + padding), dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)

            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=1):
                T.copy(
                    A[
                        by * block_M : (by + 1) * block_M,
                        k * block_K : (k + 1) * block_K,
                    ],
                    A_shared[:, 0:block_K],
                )
                T.copy(
                    B[
                        k * block_K : (k + 1) * block_K,
                        bx * block_N : (bx + 1) * block_N,
                    ],
                    B_shared[:, 0:block_N],
                )
                T.gemm(
                    A_shared[:, 0:block_K],
                    B_shared[:, 0:block_N],
                    C_local,
                    clear_accum=k == 0,
                )
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def inputs(rng, M, N, K, trans_A=False, trans_B=False, np_dtype: type = np.float16, **_):
    a = rng.standard_normal((K, M) if trans_A else (M, K)).astype(np_dtype)
    b = rng.standard_normal((N, K) if trans_B else (K, N)).astype(np_dtype)
    return a, b


def inputs_float32(rng, **values):
    return inputs(rng, np_dtype=np.float32, **values)


def inputs_bfloat16(rng, **values):
    import torch

    return tuple(torch.from_numpy(x).bfloat16() for x in inputs_float32(rng, **values))


def inputs_block_sparse(rng, M, N, K, block_M, block_N, block_K, **_):
    a, b = inputs(rng, M, N, K)
    blocks = (-(-M // block_M), -(-N // block_N), -(-K // block_K))
    return a, b, rng.random(blocks) < 0.6


def reference(a, b, trans_A=False, trans_B=False, **_):
    return ((a.T if trans_A else a) @ (b.T if trans_B else b),)


def reference_relu(a, b, **_):
    return (np.maximum(a @ b, 0),)


def reference_block_sparse(a, b, mask, block_M, block_N, block_K, **_):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i, j, k in zip(*np.nonzero(mask), strict=True):
        rows = slice(i * block_M, (i + 1) * block_M)
        columns = slice(j * block_N, (j + 1) * block_N)
        inner = slice(k * block_K, (k + 1) * block_K)
        out[rows, columns] += a[rows, inner] @ b[inner, columns]
    return (out,)
