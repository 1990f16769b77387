"""Small kernels for a GPU."""

import tilelang
import tilelang.language as T


@T.prim_func
def scale(
    A: T.Tensor((T.dynamic("n"), 64), "float16"), B: T.Tensor((T.dynamic("n"), 64), "float16"),
    factor: T.float32,
):  # fmt: skip
    with T.Kernel(T.ceildiv(A.shape[0], 16), threads=128) as bx:
        tile = T.alloc_shared((16, 64), "float16")
        T.copy(A[bx * 16, 0], tile)
        for i, j in T.Parallel(16, 64):
            tile[i, j] = tile[i, j] * factor
        T.copy(tile, B[bx * 16, 0])


@T.prim_func
def too_large(A: T.Tensor((65536,), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((65536,), "float32")
        T.copy(A, tile)
        T.copy(tile, A)


__all__ = ["scale", "tilelang", "too_large"]


@T.prim_func
def rounds(A: T.Tensor((64, 32), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        total = T.alloc_fragment((32,), "float32")
        T.clear(total)
        for k in T.serial(64):
            for i in T.Parallel(32):
                total[i] += A[k, i]
        T.copy(total, B)
