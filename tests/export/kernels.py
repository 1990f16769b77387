"""Kernels whose arguments and launches are of every kind."""

from __future__ import annotations

from typing import Any

import tilelang.language as T

n, m, s0, s1 = (T.dynamic(name) for name in ("n", "m", "s0", "s1"))


@T.prim_func
def scale(A: T.Tensor((n, 64), "float16"), B: T.Tensor((n, 64), "float16"), factor: T.float32):
    with T.Kernel(T.ceildiv(n, 16), threads=128) as bx:
        tile = T.alloc_shared((16, 64), "float16")
        T.copy(A[bx * 16, 0], tile)
        for i, j in T.Parallel(16, 64):
            tile[i, j] = tile[i, j] * factor
        T.copy(tile, B[bx * 16, 0])


@T.prim_func
def other_scale(
    A: T.Tensor((n, 32), "float16"), B: T.Tensor((n, 32), "float16"), factor: T.float32
):
    with T.Kernel(T.ceildiv(n, 16), threads=128) as bx:
        for i, j in T.Parallel(16, 32):
            B[bx * 16 + i, j] = A[bx * 16 + i, j] * factor


@T.prim_func
def sizes(
    A: T.Tensor((n * 2, m), "float32"), B: T.Tensor((m, n + 1), "float32"),
    C: T.StridedTensor((n, 8), (s0, 1), "float32"),
):  # fmt: skip
    with T.Kernel(n, threads=32) as bx:
        for i in T.Parallel(8):
            C[bx, i] = A[bx, 0] + B[0, bx]


@T.prim_func
def scalars(
    A: T.Tensor((16,), "float32"), a: T.int8, b: T.uint8, c: T.int64, d: T.bool, e: T.float16,
    f: T.bfloat16, g: T.float64, h: T.int32,
):  # fmt: skip
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            A[i] = T.float32(a) + T.float32(b) + T.float32(c) + T.float32(e) + T.float32(f)


@T.prim_func
def promised(A: T.Tensor((n,), "float32")):
    with T.Kernel(n // 64, threads=64) as bx:
        T.assume(n % 64 == 0)
        for i in T.Parallel(64):
            A[bx * 64 + i] = 1.0


@T.prim_func
def unpromised(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            A[bx * 64 + i] = 1.0


@T.prim_func
def every_second(A: T.StridedTensor((n,), (2,), "float32")):
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            A[bx * 64 + i] = 1.0


def with_its_own_dims() -> Any:
    """A kernel whose variables are other ones each time."""
    rows, pitch = T.dynamic("rows"), T.dynamic("pitch")

    @T.prim_func
    def main(A: T.StridedTensor((rows, 8), (pitch, 1), "float32")):
        with T.Kernel(rows, threads=32) as bx:
            T.assume(rows % 64 == 0)
            for i in T.Parallel(8):
                A[bx, i] = 1.0

    return main.function


@T.prim_func
def nullable(
    A: T.Tensor((n,), "float32"), B: T.Tensor((n, m), "float32") = None,
    C: T.Tensor((m,), "float32") = None,
):  # fmt: skip
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            A[bx * 32 + i] = 1.0
            B[bx * 32 + i, 0] = C[0]


@T.prim_func
def unbound(A: T.Tensor((n * m,), "float32")):
    with T.Kernel(n, threads=32):
        for i in T.Parallel(32):
            A[i] = 1.0


@T.prim_func
def packed(A: T.Tensor((4, m), "int4"), B: T.Tensor((4, m), "int8")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(4, 8):
            B[i, j] = T.cast(A[i, j], "int8")


@T.prim_func
def asserted(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            T.device_assert(A[bx * 32 + i] >= 0.0, "negative")
            A[bx * 32 + i] = A[bx * 32 + i] + 1.0


def named(name: str) -> Any:
    """The traced kernel of that name."""
    return globals()[name].function
