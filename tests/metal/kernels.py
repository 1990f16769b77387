"""Kernels that Metal is tried on: elementwise, reductions, softmax, products."""

from __future__ import annotations

from typing import Any

import tilelang.language as T


def scaled(dtype: str = "float16") -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def scaled(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), factor: T.float32):
        with T.Kernel(T.ceildiv(n, 512), threads=128) as bx:
            for i in T.Parallel(512):
                B[bx * 512 + i] = T.exp(A[bx * 512 + i]) * factor

    return scaled


def row_sums(rows: int = 37, columns: int = 200, dtype: str = "float16") -> Any:
    @T.prim_func
    def row_sums(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows,), "float32")):
        with T.Kernel(T.ceildiv(rows, 16), threads=128) as bx:
            tile = T.alloc_fragment((16, 256), "float32")
            sums = T.alloc_fragment((16,), "float32")
            T.copy(A[bx * 16, 0], tile)
            T.reduce_sum(tile, sums, dim=1)
            T.copy(sums, B[bx * 16])

    return row_sums


def softmax(rows: int = 37, columns: int = 200, dtype: str = "float16") -> Any:
    @T.prim_func
    def softmax(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, 16), threads=128) as bx:
            tile = T.alloc_fragment((16, 256), "float32")
            best = T.alloc_fragment((16,), "float32")
            total = T.alloc_fragment((16,), "float32")
            T.copy(A[bx * 16, 0], tile)
            for i, j in T.Parallel(16, 256):
                tile[i, j] = T.if_then_else(j < columns, tile[i, j], -T.infinity("float32"))
            T.reduce_max(tile, best, dim=1)
            for i, j in T.Parallel(16, 256):
                tile[i, j] = T.exp(tile[i, j] - best[i])
            T.reduce_sum(tile, total, dim=1)
            for i, j in T.Parallel(16, 256):
                tile[i, j] = tile[i, j] / total[i]
            T.copy(tile, B[bx * 16, 0])

    return softmax


def product(
    shape: tuple[int, int, int] = (100, 72, 80), dtype: str = "float16", out: str = "float32",
    transpose_A: bool = False, transpose_B: bool = False, epilogue: bool = False,
    tile: tuple[int, int, int] = (64, 32, 32), threads: int = 128, stages: int = 2,
) -> Any:  # fmt: skip
    """A product; with an epilogue elements of the sums are looked at."""
    (m, n, k), (rows, columns, depth) = shape, tile
    a_shape, a_tile = ((k, m), (depth, rows)) if transpose_A else ((m, k), (rows, depth))
    b_shape, b_tile = ((n, k), (columns, depth)) if transpose_B else ((k, n), (depth, columns))

    @T.prim_func
    def product(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), out)):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=threads) as (bx, by):
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, dtype)
            C_l = T.alloc_fragment((rows, columns), "float32")
            T.clear(C_l)
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=stages):
                if transpose_A:
                    T.copy(A[step * depth, by * rows], A_s)
                else:
                    T.copy(A[by * rows, step * depth], A_s)
                if transpose_B:
                    T.copy(B[bx * columns, step * depth], B_s)
                else:
                    T.copy(B[step * depth, bx * columns], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B)
            if epilogue:
                for i, j in T.Parallel(rows, columns):
                    C_l[i, j] = T.max(C_l[i, j], 0.0)
            T.copy(C_l, C[by * rows, bx * columns])

    return product


GOLDEN = {
    "scaled": scaled, "row_sums": row_sums, "softmax": softmax, "product": product,
    "product_epilogue": lambda: product(epilogue=True),
}  # fmt: skip
