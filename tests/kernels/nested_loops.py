"""Which nestings of parallel, pipelined and sequential loops and tile ops are legal."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def serial_in_parallel(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(M):
                B[i] = 0
                for j in T.serial(N):
                    B[i] += A[i, j]

    return main


@tilelang.jit(out_idx=[1])
def parallel_directly_nested(M, N):
    """Nothing stands between the loops, so they are one loop over (M, N)."""

    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M, N), T.float32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(M):
                for j in T.Parallel(N):
                    B[i, j] = A[i, j] * 2

    return main


@tilelang.jit(out_idx=[1])
def parallel_in_pipelined(M, N, block=16):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((M, block), T.float32)
            acc = T.alloc_fragment((M, block), T.float32)
            total = T.alloc_fragment((M,), T.float32)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(N, block), num_stages=2):
                T.copy(A[0, k * block], tile)
                for i, j in T.Parallel(M, block):
                    acc[i, j] += tile[i, j]
                for i, j in T.Parallel(M, block):
                    acc[i, j] = acc[i, j] * 0.5
            T.reduce_sum(acc, total, dim=1)
            T.copy(total, B)

    return main


@tilelang.jit(out_idx=[1])
def pipelined_in_serial(M, N, repeat=2, block=16):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((M, block), T.float32)
            total = T.alloc_fragment((M,), T.float32)
            T.clear(total)
            for _r in T.serial(repeat):
                for k in T.Pipelined(T.ceildiv(N, block), num_stages=2):
                    T.copy(A[0, k * block], tile)
                    T.reduce_sum(tile, total, dim=1, clear=False)
            T.copy(total, B)

    return main


@tilelang.jit(out_idx=[1])
def parallel_nested_with_statements(M=8, N=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M, N), T.float32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(M):
                B[i, 0] = 0
                for j in T.Parallel(N):
                    B[i, j] = A[i, j]

    return main


@tilelang.jit(out_idx=[1])
def pipelined_in_parallel(M=8, N=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M, N), T.float32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(M):
                for j in T.Pipelined(N, num_stages=2):
                    B[i, j] = A[i, j]

    return main


@tilelang.jit(out_idx=[1])
def tile_op_in_parallel(M=8, N=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), T.float32), B: T.Tensor((M, N), T.float32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(M):
                T.copy(A[i, :], B[i, :])

    return main


@tilelang.jit(out_idx=[1])
def local_indexed_by_parallel(M=8):
    @T.prim_func
    def main(A: T.Tensor((M,), T.float32), B: T.Tensor((M,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            mine = T.alloc_local((M,), T.float32)
            for i in T.Parallel(M):
                mine[i] = A[i]
                B[i] = mine[i]

    return main


def inputs(rng, M, N, **_):
    return (rng.random((M, N), dtype=np.float32),)


def reference_row_sums(a, repeat=1, **_):
    return (repeat * a.sum(axis=1),)


def reference_double(a, **_):
    return (a * 2,)


def reference_halving(a, N, block, **_):
    total = np.zeros(len(a))
    for start in range(0, N, block):
        total = (total + a[:, start : start + block].sum(axis=1)) * 0.5
    return (total,)
