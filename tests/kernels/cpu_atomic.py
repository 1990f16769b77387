"""Atomic updates: scalar, vector and region forms, memory orders, returned old values."""

import numpy as np

import tilelang.language as T


def atomic_scalars(N):
    """Every block adds, takes the maximum, the minimum and sets a bit in one cell each."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), Out: T.Tensor((4,), T.int32)):
        with T.Kernel(N, threads=1) as bx:
            T.atomic_add(Out[0], A[bx])
            T.atomic_max(Out[1], A[bx], memory_order="relaxed")
            T.atomic_min(Out[2], A[bx], memory_order="acq_rel")
            T.atomic_or(Out[3], 1 << (bx % 31))

    return main


def atomic_float_sum(M, N, block, dtype=T.float32):
    """Column sums: blocks of rows meet in one vector."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
            tile = T.alloc_shared((block, N), dtype)
            T.copy(A[bx * block, 0], tile)
            for i, j in T.Parallel(block, N):
                T.atomic_add(Out[j], tile[i, j], memory_order="relaxed")

    return main


def atomic_region(M, N, parts, dtype=T.float32):
    """Whole tiles are added at once; the rows beyond the last are dropped."""

    @T.prim_func
    def main(A: T.Tensor((parts, M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 8), parts, threads=32) as (bx, by):
            tile = T.alloc_fragment((8, N), dtype)
            T.copy(A[by, bx * 8 : (bx + 1) * 8, :], tile)
            T.atomic_add(Out[bx * 8, 0], tile)

    return main


def atomic_vectors(N, parts):
    """Two and four neighbouring elements in one update."""

    @T.prim_func
    def main(
        A: T.Tensor((parts, N), T.float16),
        B: T.Tensor((parts, N), T.float32),
        Out2: T.Tensor((N,), T.float16),
        Out4: T.Tensor((N,), T.float32),
    ):
        with T.Kernel(parts, threads=32) as bx:
            for i in T.Parallel(N // 2):
                T.atomic_addx2(Out2[i * 2], A[bx, i * 2])
            for i in T.Parallel(N // 4):
                T.atomic_addx4(Out4[i * 4], B[bx, i * 4])

    return main


def atomic_tickets(N):
    """The value before the update numbers the visitors: every ticket is drawn exactly once."""

    @T.prim_func
    def main(
        Counter: T.Tensor((1,), T.int32),
        Tickets: T.Tensor((N,), T.int32),
        Largest: T.Tensor((1,), T.int32),
    ):
        with T.Kernel(N, threads=1) as bx:
            ticket = T.atomic_add(Counter[0], 1, return_prev=True)
            Tickets[bx] = ticket
            T.atomic_max(Largest[0], ticket)

    return main


def atomic_load_store(N):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(N, threads=1) as bx:
            value = T.atomic_load(A[bx], memory_order="acquire")
            T.atomic_store(B[bx], value * 3, memory_order="release")

    return main


def atomic_add_with_tma(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), Out: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((N,), T.float32)
            T.copy(A, tile)
            T.atomic_add(Out[0], tile, use_tma=True)

    return main


def atomic_region_with_return(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), Out: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((N,), T.float32)
            T.copy(A, tile)
            old = T.atomic_add(Out[0:N], tile, return_prev=True)
            Out[0] = old

    return main


def inputs_scalars(rng, N, **_):
    start = np.array([0, -(2**31), 2**31 - 1, 0], np.int32)
    return rng.integers(-1000, 1000, N).astype(np.int32), start


def inputs_float_sum(rng, M, N, **_):
    return rng.random((M, N), dtype=np.float32), np.zeros(N, np.float32)


def inputs_region(rng, M, N, parts, **_):
    return rng.random((parts, M, N), dtype=np.float32), np.zeros((M, N), np.float32)


def inputs_vectors(rng, N, parts, **_):
    return (
        rng.random((parts, N)).astype(np.float16),
        rng.random((parts, N), dtype=np.float32),
        np.zeros(N, np.float16),
        np.zeros(N, np.float32),
    )


def inputs_tickets(_rng, N, **_):
    return np.zeros(1, np.int32), np.zeros(N, np.int32), np.zeros(1, np.int32)


def inputs_load_store(rng, N, **_):
    return rng.integers(-1000, 1000, N).astype(np.int32), np.zeros(N, np.int32)


def reference_scalars(a, _start, N, **_):
    bits = 0
    for i in range(N):
        bits |= 1 << (i % 31)
    return (np.array([a.sum(), a.max(), a.min(), bits], np.int32),)


def reference_float_sum(a, _out, **_):
    return (a.sum(axis=0),)


def reference_vectors(a, b, *_outs, **_):
    return a.sum(axis=0), b.sum(axis=0)


def reference_tickets(*_args, N, **_):
    return (
        np.array([N], np.int32),
        np.arange(N, dtype=np.int32),
        np.array([N - 1], np.int32),
    )


def reference_load_store(a, _out, **_):
    return (a * 3,)


def sort_tickets(outputs):
    counter, tickets, largest = outputs
    return counter, np.sort(tickets), largest
