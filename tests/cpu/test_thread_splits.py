"""Do values survive the cuts of `cpu_threads`, wherever they are bound, kept and read?

Each kernel puts one thing across a barrier that a careless split would lose.
"""

from __future__ import annotations

import numpy as np

import tilelang.language as T
from tests.support.cpu import run_on_cpu

N = 128


def ints(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 50, shape).astype(np.int32)


def test_bound_value_is_the_one_read_before_the_barrier() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((N,), "int32")
            shared[tx] = A[tx]
            T.sync_threads()
            mirrored = shared[N - 1 - tx]
            T.sync_threads()
            shared[tx] = 0
            T.sync_threads()
            B[tx] = mirrored + shared[tx]

    a, b = ints(N), np.zeros(N, np.int32)
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(b, a[::-1])


def test_uniform_variable_changes_once_per_step_not_once_per_thread() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((N,), "int32")
            step = T.alloc_var("int32")
            step = 1
            B[tx] = 0
            for _ in T.serial(5):
                shared[tx] = A[tx] * step
                T.sync_threads()
                B[tx] = B[tx] + shared[(tx + step) % N]
                step = step * 2
                T.sync_threads()
            for i in T.Parallel(N):
                A[i] = A[i] + step

    a, b = ints(N), np.zeros(N, np.int32)
    before = a.copy()
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(b, sum(np.roll(before << k, -(1 << k)) for k in range(5)))
    np.testing.assert_array_equal(a, before + 32)


def test_variable_with_one_copy_per_thread_but_one_value_is_read_by_the_block() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            total = T.alloc_var("int32")
            total = 0
            for k in T.serial(5):
                A[tx] = A[tx] + total
                total = total + k
            T.sync_threads()
            for i in T.Parallel(N):
                B[i] = A[N - 1 - i] + total

    a, b = ints(N), np.zeros(N, np.int32)
    before = a.copy()
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(a, before + 0 + 0 + 1 + 3 + 6)
    np.testing.assert_array_equal(b, a[::-1] + 10)


def test_break_on_a_block_vote() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            mine = T.alloc_var("int32")
            rounds = T.alloc_var("int32")
            mine = A[tx]
            rounds = 0
            for _ in T.serial(100):
                left = T.syncthreads_count(mine > 0)
                if left < 10:
                    break
                mine = mine - 1
                rounds = rounds + 1
            if tx == 0:
                B[0] = rounds
            A[tx] = mine

    a, b = ints(N), np.zeros(1, np.int32)
    want, rounds = a.copy(), 0
    while (want > 0).sum() >= 10 and rounds < 100:
        want, rounds = want - 1, rounds + 1
    run_on_cpu(kernel, a, b)
    assert b[0] == rounds
    np.testing.assert_array_equal(a, want)


def test_barrier_inside_a_branch_of_whole_blocks() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, N), "int32"), B: T.Tensor((4, N), "int32")):
        with T.Kernel(4, threads=N) as bx:
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((N,), "int32")
            if bx % 2 == 0:
                shared[tx] = A[bx, tx]
                T.sync_threads()
                B[bx, tx] = shared[N - 1 - tx]
            else:
                B[bx, tx] = -A[bx, tx]

    a, b = ints(4, N), np.zeros((4, N), np.int32)
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(b[::2], a[::2, ::-1])
    np.testing.assert_array_equal(b[1::2], -a[1::2])


def test_nested_branches_with_exchanges_in_some() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            warp = tx // 32
            x = T.alloc_var("int32")
            x = A[tx]
            if warp == 1:
                for k in T.serial(5):
                    x = x + T.shfl_xor(x, 1 << k)
            else:
                if warp == 2:
                    x = T.shfl_up(x, 1)
                else:
                    x = -x
            B[tx] = x

    a, b = ints(N), np.zeros(N, np.int32)
    run_on_cpu(kernel, a, b)
    want = -a
    want[32:64] = a[32:64].sum()
    want[64], want[65:96] = a[64], a[64:95]
    np.testing.assert_array_equal(b, want)


def test_private_array_allocated_inside_a_loop_with_barriers() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((N,), "int32")
            B[tx] = 0
            T.sync_threads()
            for k in T.serial(4):
                mine = T.alloc_local((2,), "int32")
                mine[0] = A[tx] + k
                mine[1] = mine[0] * 2
                shared[tx] = mine[0]
                T.sync_threads()
                mine[0] = shared[(tx + 1) % N]
                B[tx] = B[tx] + mine[0] + mine[1]
                T.sync_threads()

    a, b = ints(N), np.zeros(N, np.int32)
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(b, sum(np.roll(a + k, -1) + 2 * (a + k) for k in range(4)))


def test_shared_histogram() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8 * N,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(4, threads=N) as bx:
            tx = T.get_thread_binding(0)
            bins = T.alloc_shared((16,), "int32")
            if tx < 16:
                bins[tx] = 0
            T.sync_threads()
            for i in T.serial(2):
                T.atomic_add(bins[A[bx * 2 * N + i * N + tx]], 1)
            T.sync_threads()
            if tx < 16:
                T.atomic_add(B[tx], bins[tx])

    a, b = ints(8 * N) % 16, np.zeros(16, np.int32)
    run_on_cpu(kernel, a, b)
    np.testing.assert_array_equal(b, np.bincount(a, minlength=16))


def test_positions_in_a_three_dimensional_block() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 2, 8), "int32"), B: T.Tensor((8, 2, 4), "int32")):
        with T.Kernel(1, threads=(8, 2, 4)):
            tx, ty, tz = T.get_thread_bindings()
            shared = T.alloc_shared((64,), "int32")
            shared[(tz * 2 + ty) * 8 + tx] = A[tz, ty, tx]
            T.sync_threads()
            B[tx, ty, tz] = shared[(tz * 2 + ty) * 8 + tx] + T.get_warp_idx() * 1000

    a, b = ints(4, 2, 8), np.zeros((8, 2, 4), np.int32)
    run_on_cpu(kernel, a, b)
    warps = np.arange(64).reshape(4, 2, 8) // 32
    np.testing.assert_array_equal(b, (a + warps * 1000).transpose(2, 1, 0))


def test_view_of_a_private_array_across_a_barrier() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 8), "float32"), B: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((64,), "float32")
            mine = T.alloc_local((8,), "float32")
            square = T.reshape(mine, (2, 4))
            for i in T.vectorized(8):
                mine[i] = A[tx, i]
            shared[tx] = square[1, 3]
            T.sync_threads()
            square[0, 0] = shared[63 - tx]
            for i in T.vectorized(8):
                B[tx, i] = mine[i]

    a = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    b = np.zeros_like(a)
    run_on_cpu(kernel, a, b)
    want = a.copy()
    want[:, 0] = a[::-1, 7]
    np.testing.assert_array_equal(b, want)


def test_threads_that_meet_wait_without_a_barrier_of_the_author() -> None:
    """At the places where a GPU has them wait, in loops and under conditions."""
    n = 24

    @T.prim_func
    def eliminate(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32")):
        with T.Kernel(1, threads=32):
            tid = T.get_thread_binding()
            m = T.alloc_shared((n, n), "float32")
            for c in T.serial(n):
                if tid < n:
                    m[tid, c] = A[tid, c]
            for k in T.serial(n):
                if tid > k and tid < n:
                    m[tid, k] /= m[k, k]
                    for j in T.serial(k + 1, n):
                        m[tid, j] -= m[tid, k] * m[k, j]
            if tid < n:
                for c in T.serial(n):
                    B[c, tid] = m[c, tid]

    rng = np.random.default_rng(0)
    a = (rng.standard_normal((n, n)) + n * np.eye(n)).astype(np.float32)
    b = np.zeros_like(a)
    run_on_cpu(eliminate, a, b)
    lower, upper = np.tril(b, -1) + np.eye(n), np.triu(b)
    np.testing.assert_allclose(lower.astype(np.float64) @ upper, a, rtol=1e-4, atol=1e-3)


def test_what_a_parallel_loop_names_belongs_to_its_iterations() -> None:
    @T.prim_func
    def ranks(A: T.Tensor((40,), "int32"), B: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=32):
            tid = T.get_thread_binding()
            next_place = T.alloc_shared((4,), "int32")
            if tid < 4:
                next_place[tid] = tid * 10
            for i in T.Parallel(40):
                place = T.atomic_add(next_place[A[i]], 1, return_prev=True)
                B[place] = i

    a = np.tile(np.arange(4, dtype=np.int32), 10)
    b = np.zeros(40, np.int32)
    run_on_cpu(ranks, a, b)
    assert (a[b] == np.repeat(np.arange(4), 10)).all()


def test_a_variable_of_each_thread_lives_across_a_wait_that_nobody_wrote() -> None:
    @T.prim_func
    def shifted(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tid = T.get_thread_binding()
            row = T.alloc_shared((64,), "int32")
            row[tid] = A[tid]
            for r in T.serial(3):
                mine = T.alloc_var("int32", init=r)
                if tid > 0:
                    mine = row[tid - 1]
                if tid >= 0:
                    row[tid] = mine
            B[tid] = row[tid]

    a, b = np.arange(64, dtype=np.int32) + 10, np.zeros(64, np.int32)
    run_on_cpu(shifted, a, b)
    np.testing.assert_array_equal(b, [2, 1, 0, *a[:-3]])
