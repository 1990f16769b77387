"""Tiles seen under another shape, then reduced; sizes that do not match are refused."""

import numpy as np

import tilelang.language as T


def reshape_shared_then_reduce(rows, columns, dtype=T.float32):
    N = rows * columns

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((rows,), dtype)):
        with T.Kernel(1, threads=32) as _:
            A_shared = T.alloc_shared((N,), dtype)
            B_local = T.alloc_fragment((rows,), dtype)

            T.copy(A, A_shared)
            A_2d = T.reshape(A_shared, [rows, columns])
            T.reduce_sum(A_2d, B_local, dim=1)
            T.copy(B_local, B)

    return main


def reshape_fragment_then_reduce(rows, columns, dtype=T.float32):
    N = rows * columns

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((rows,), dtype)):
        with T.Kernel(1, threads=32) as _:
            A_local = T.alloc_fragment((N,), dtype)
            B_local = T.alloc_fragment((rows,), dtype)

            T.copy(A, A_local)
            A_2d = T.reshape(A_local, (rows, columns))
            T.reduce_max(A_2d, B_local, dim=1)
            T.copy(B_local, B)

    return main


def flatten_shared(rows, columns, dtype=T.float32):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows * columns,), dtype)):
        with T.Kernel(1, threads=32) as _:
            A_shared = T.alloc_shared((rows, columns), dtype)
            T.copy(A, A_shared)
            flat = T.reshape(A_shared, [rows * columns])
            for i in T.Parallel(rows * columns):
                B[i] = flat[i] * 2

    return main


def view_bits(N):
    """The same bytes under another dtype: T.view keeps bits, not values."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=32) as _:
            A_shared = T.alloc_shared((N,), T.float32)
            T.copy(A, A_shared)
            bits = T.view(A_shared, dtype=T.int32)
            T.copy(bits, B)

    return main


def reshape_to_other_size(N=64, dtype=T.float32):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32) as _:
            A_shared = T.alloc_shared((N,), dtype)
            T.copy(A, A_shared)
            A_2d = T.reshape(A_shared, [N // 8, 9])
            T.clear(A_2d)

    return main


def inputs_flat(rng, rows, columns, **_):
    return (rng.standard_normal(rows * columns).astype(np.float32),)


def inputs_2d(rng, rows, columns, **_):
    return (rng.standard_normal((rows, columns)).astype(np.float32),)


def inputs_bits(rng, N, **_):
    return (rng.standard_normal(N).astype(np.float32),)


def reference_sum(a, rows, **_):
    return (a.reshape(rows, -1).sum(axis=1),)


def reference_max(a, rows, **_):
    return (a.reshape(rows, -1).max(axis=1),)


def reference_flatten(a, **_):
    return (a.reshape(-1) * 2,)


def reference_bits(a, **_):
    return (a.astype(np.float32).view(np.int32),)
