"""Small kernels whose generated source is written down: one idea of the lowering each."""

from __future__ import annotations

from typing import Any

import tilelang.language as T


@T.prim_func
def elementwise(
    A: T.Tensor((100, 64), "float16"), B: T.Tensor((100, 64), "float16"),
):  # fmt: skip
    """Coalesced vectors; rows that do not exist are guarded, columns need no guard."""
    with T.Kernel(T.ceildiv(100, 32), threads=128) as bx:
        for i, j in T.Parallel(32, 64):
            B[bx * 32 + i, j] = A[bx * 32 + i, j] * T.float16(2)


@T.prim_func
def through_registers(A: T.Tensor((48,), "float32"), B: T.Tensor((48,), "float32")):
    """A tile the threads do not divide: those without an element are guarded."""
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((48,), "float32")
        T.copy(A, x)
        for i in T.Parallel(48):
            x[i] = x[i] + 1.0
        T.copy(x, B)


@T.prim_func
def row_sums(A: T.Tensor((8, 128), "float32"), B: T.Tensor((8,), "float32")):
    """Registers, then shuffles; copies of a total are written once."""
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((8, 128), "float32")
        total = T.alloc_fragment((8,), "float32")
        T.copy(A, x)
        T.reduce_sum(x, total, dim=1)
        T.copy(total, B)


@T.prim_func
def product(
    A: T.Tensor((64, 32), "float16"), B: T.Tensor((64, 32), "float16"),
    C: T.Tensor((64, 64), "float32"),
):  # fmt: skip
    """Swizzled operands, `ldmatrix`, matrix instructions on registers."""
    with T.Kernel(1, threads=128):
        A_s = T.alloc_shared((64, 32), "float16")
        B_s = T.alloc_shared((64, 32), "float16")
        C_l = T.alloc_fragment((64, 64), "float32")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.clear(C_l)
        T.gemm(A_s, B_s, C_l, transpose_B=True)
        T.copy(C_l, C)


@T.prim_func
def moved(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    """A fragment that other threads than hold it work on goes through shared memory."""
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((32, 32), "float32")
        y = T.alloc_fragment((32, 32), "float32")
        T.copy(A, x)
        T.copy(A, y)
        for i, j in T.Parallel(32, 32):
            y[i, j] += x[i, j]
        for i, j in T.Parallel(32, 32):
            y[i, j] += x[j, i]
        T.copy(y, B)


@T.prim_func
def seen_as_words(A: T.Tensor((16, 64), "float16"), B: T.Tensor((16, 32), "uint32")):
    """A fragment seen as elements of another width stays in the same registers."""
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((16, 64), "float16")
        T.copy(A, x)
        words = T.view(x, (16, 32), "uint32")
        for i, j in T.Parallel(16, 32):
            words[i, j] = words[i, j] ^ T.uint32(0x80008000)
        T.copy(words, B)


@T.prim_func
def own_rows(A: T.Tensor((32, 8), "float32"), B: T.Tensor((32, 8), "float32")):
    """What works on memory of a thread's own is done by every thread for itself."""
    with T.Kernel(1, threads=32):
        tx = T.get_thread_binding(0)
        row = T.alloc_local((8,), "float32")
        T.copy(A[tx, 0:8], row)
        for j in T.unroll(8):
            row[j] = row[j] * 2.0
        T.copy(row, B[tx, 0:8])


KERNELS: dict[str, Any] = {
    kernel.__name__: kernel
    for kernel in (
        elementwise, through_registers, row_sums, product, moved, seen_as_words, own_rows,
    )
}  # fmt: skip
