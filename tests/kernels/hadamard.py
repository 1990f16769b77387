"""Hadamard transform of rows: y = H x, by log2(n) rounds of butterflies.

Round r pairs elements whose indices differ in bit r. ``hadamard`` runs the low rounds inside a
thread, the next ones by shuffles inside a warp and the rest through shared memory;
``hadamard_shared`` is the portable form, all rounds through shared memory.
"""

import numpy as np

import tilelang
import tilelang.language as T


def log2_of(n):
    rounds = n.bit_length() - 1
    if n != 1 << rounds:
        raise ValueError(f"the length of a row must be a power of two, got {n}")
    return rounds


@tilelang.jit
def hadamard(A, n, dtype):
    b = T.const("b")
    A: T.Tensor((b, n), dtype)
    B = T.empty((b, n), dtype)

    rounds = log2_of(n)
    per_thread = 8 if n >= 256 else 2
    threads = n // per_thread
    thread_rounds = log2_of(per_thread)
    warp_rounds = min(5, log2_of(threads))

    with T.Kernel(b, threads=threads) as bx:
        tx = T.get_thread_binding(0)
        mine = T.alloc_local((per_thread,), dtype)
        other = T.alloc_local((per_thread,), dtype)
        exchange = T.alloc_shared((threads, per_thread), dtype)

        for i in T.vectorized(per_thread):
            mine[i] = A[bx, tx * per_thread + i]

        for r in T.unroll(thread_rounds):
            for pair in T.unroll(per_thread // 2):
                low = (pair >> r << (r + 1)) + pair % (1 << r)
                high = low + (1 << r)
                other[0] = mine[low]
                mine[low] = other[0] + mine[high]
                mine[high] = other[0] - mine[high]

        for r in T.serial(warp_rounds):
            for i in T.unroll(per_thread):
                other[i] = T.shfl_xor(mine[i], 1 << r)
            for i in T.unroll(per_thread):
                mine[i] = T.if_then_else((tx >> r) % 2 == 0, mine[i] + other[i], other[i] - mine[i])

        for r in T.serial(warp_rounds, rounds - thread_rounds):
            for i in T.vectorized(per_thread):
                exchange[tx, i] = mine[i]
            T.sync_threads()
            for i in T.vectorized(per_thread):
                other[i] = exchange[tx ^ (1 << r), i]
            T.sync_threads()
            for i in T.unroll(per_thread):
                mine[i] = T.if_then_else((tx >> r) % 2 == 0, mine[i] + other[i], other[i] - mine[i])

        for i in T.vectorized(per_thread):
            B[bx, tx * per_thread + i] = mine[i]

    return B


@tilelang.jit
def hadamard_shared(A, n, dtype):
    b = T.const("b")
    A: T.Tensor((b, n), dtype)
    B = T.empty((b, n), dtype)

    with T.Kernel(b, threads=min(n // 2, 256)) as bx:
        row = T.alloc_shared((n,), dtype)
        T.copy(A[bx, :], row)
        for r in T.serial(log2_of(n)):
            for pair in T.Parallel(n // 2):
                low = ((pair >> r) << (r + 1)) + pair % (1 << r)
                a = row[low]
                c = row[low + (1 << r)]
                row[low] = a + c
                row[low + (1 << r)] = a - c
        T.copy(row, B[bx, :])

    return B


def inputs(rng, b, n, **_):
    return (rng.standard_normal((b, n)).astype(np.float32),)


def reference(a, n, **_):
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return (a @ h,)
