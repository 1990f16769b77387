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
    # At most 1024 threads, at least a warp.
    per_thread = max(4, n // 1024)
    threads = n // per_thread
    assert threads >= 32, "a row must fill a warp"
    thread_rounds = log2_of(per_thread)
    warp_rounds = 5

    with T.Kernel(b, threads=threads) as bx:
        tx = T.get_thread_binding(0)
        mine = T.alloc_local((per_thread,), dtype)
        other = T.alloc_local((per_thread,), dtype)
        # Thread index last: neighbouring threads touch neighbouring banks.
        exchange = T.alloc_shared((per_thread, threads), dtype)

        for group in T.unroll(per_thread // 4):
            for i in T.vectorized(4):
                mine[group * 4 + i] = A[bx, tx * per_thread + group * 4 + i]

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
            for i in T.serial(per_thread):
                exchange[i, tx] = mine[i]
            T.sync_threads()
            for i in T.serial(per_thread):
                other[i] = exchange[i, tx ^ (1 << r)]
            T.sync_threads()
            for i in T.unroll(per_thread):
                mine[i] = T.if_then_else((tx >> r) % 2 == 0, mine[i] + other[i], other[i] - mine[i])

        for group in T.unroll(per_thread // 4):
            for i in T.vectorized(4):
                B[bx, tx * per_thread + group * 4 + i] = mine[group * 4 + i]

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
    out = a.copy()
    for r in range(log2_of(n)):
        pairs = out.reshape(len(a), -1, 2, 1 << r)
        out = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
    return (out.reshape(a.shape),)
