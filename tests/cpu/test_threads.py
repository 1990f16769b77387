"""Do kernels written for cooperating threads give the same on one core as on a GPU?"""

from __future__ import annotations

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import refusals, run_on_cpu
from tilelang.language.primfunc import PrimFunc

BLOCKS, THREADS = 4, 256
N = BLOCKS * THREADS


def floats(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


def test_values_cross_threads_at_a_barrier() -> None:
    @T.prim_func
    def reverse(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(BLOCKS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((THREADS,), "float32")
            shared[tx] = A[bx * THREADS + tx]
            T.sync_threads()
            B[bx * THREADS + tx] = shared[THREADS - 1 - tx]

    a, b = floats(), np.zeros(N, np.float32)
    run_on_cpu(reverse, a, b)
    np.testing.assert_array_equal(b.reshape(BLOCKS, -1), a.reshape(BLOCKS, -1)[:, ::-1])


def test_barrier_in_a_uniform_while_loop() -> None:
    @T.prim_func
    def tree(A: T.Tensor((N,), "float32"), B: T.Tensor((BLOCKS,), "float32")):
        with T.Kernel(BLOCKS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((THREADS,), "float32")
            shared[tx] = A[bx * THREADS + tx]
            T.sync_threads()
            step = T.alloc_var("int32")
            step = THREADS // 2
            while step > 0:
                if tx < step:
                    shared[tx] = shared[tx] + shared[tx + step]
                T.sync_threads()
                step = step // 2
            if tx == 0:
                B[bx] = shared[0]

    a, b = floats(), np.zeros(BLOCKS, np.float32)
    run_on_cpu(tree, a, b)
    np.testing.assert_allclose(b, a.reshape(BLOCKS, -1).sum(1), rtol=1e-4, atol=1e-4)


def test_private_variable_lives_across_barriers() -> None:
    @T.prim_func
    def scan(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(BLOCKS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((THREADS,), "float32")
            mine = T.alloc_local((1,), "float32")
            mine[0] = A[bx * THREADS + tx]
            for i in T.serial(8):
                shared[tx] = mine[0]
                T.sync_threads()
                if tx >= (1 << i):
                    mine[0] = mine[0] + shared[tx - (1 << i)]
                T.sync_threads()
            B[bx * THREADS + tx] = mine[0]

    a, b = floats(), np.zeros(N, np.float32)
    run_on_cpu(scan, a, b)
    want = a.reshape(BLOCKS, -1).astype(np.float64).cumsum(1).reshape(-1)
    np.testing.assert_allclose(b, want, atol=1e-4)


def test_private_vectors_need_no_barrier() -> None:
    @T.prim_func
    def scale(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            tx = T.get_thread_binding(0)
            mine = T.alloc_local((4,), "float32")
            for v in T.vectorized(4):
                mine[v] = A[bx * 512 + tx * 4 + v]
            for v in T.serial(4):
                mine[v] = mine[v] * 2.0 + tx
            for v in T.vectorized(4):
                B[bx * 512 + tx * 4 + v] = mine[v]

    a, b = floats(), np.zeros(N, np.float32)
    run_on_cpu(scale, a, b)
    np.testing.assert_allclose(b, a * 2 + np.arange(N) % 512 // 4, rtol=1e-6, atol=1e-6)


def test_tile_operations_run_once_between_thread_loops() -> None:
    @T.prim_func
    def mixed(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((64, 64), "float32")
            T.copy(A, shared)
            T.sync_threads()
            row = T.alloc_local((64,), "float32")
            T.copy(shared[tx, 0:64], row)
            for j in T.serial(64):
                row[j] = row[j] + tx
            T.sync_threads()
            T.copy(row, shared[tx, 0:64])
            T.sync_threads()
            for i, j in T.Parallel(64, 64):
                B[i, j] = shared[i, j] * 2.0

    a = floats()[: 4096 // 4].repeat(4).reshape(64, 64).copy()
    b = np.zeros((64, 64), np.float32)
    run_on_cpu(mixed, a, b)
    np.testing.assert_allclose(b, (a + np.arange(64)[:, None]) * 2, rtol=1e-6)


def test_two_dimensional_thread_blocks() -> None:
    @T.prim_func
    def transpose(A: T.Tensor((32, 64), "int32"), B: T.Tensor((64, 32), "int32")):
        with T.Kernel(4, 2, threads=(16, 16)) as (bx, by):
            tx, ty = T.get_thread_bindings()[:2]
            shared = T.alloc_shared((16, 16), "int32")
            shared[ty, tx] = A[by * 16 + ty, bx * 16 + tx]
            T.sync_threads()
            B[bx * 16 + ty, by * 16 + tx] = shared[tx, ty]

    a = np.arange(32 * 64, dtype=np.int32).reshape(32, 64)
    b = np.zeros((64, 32), np.int32)
    run_on_cpu(transpose, a, b)
    np.testing.assert_array_equal(b, a.T)


def test_returned_threads_take_no_further_part() -> None:
    @T.prim_func
    def early(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(BLOCKS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            if tx >= 100:
                T.thread_return()
            shared = T.alloc_shared((THREADS,), "float32")
            shared[tx] = A[bx * THREADS + tx]
            T.sync_threads()
            B[bx * THREADS + tx] = shared[99 - tx]

    a, b = floats(), np.zeros(N, np.float32)
    run_on_cpu(early, a, b)
    want = np.zeros((BLOCKS, THREADS), np.float32)
    want[:, :100] = a.reshape(BLOCKS, -1)[:, 99::-1]
    np.testing.assert_array_equal(b.reshape(BLOCKS, -1), want)


def test_shuffles_under_a_divergent_branch() -> None:
    @T.prim_func
    def block_sum(A: T.Tensor((N,), "float32"), B: T.Tensor((BLOCKS,), "float32")):
        with T.Kernel(BLOCKS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            shared = T.alloc_shared((8,), "float32")
            total = T.alloc_var("float32")
            total = A[bx * THREADS + tx]
            for i in T.serial(5):
                total = total + T.shfl_xor(total, 16 >> i)
            if tx % 32 == 0:
                shared[tx // 32] = total
            T.sync_threads()
            if tx // 32 == 0:
                part = T.alloc_var("float32")
                part = T.if_then_else(tx < 8, shared[T.min(tx, 7)], 0.0)
                part = part + T.shfl_down(part, 4)
                part = part + T.shfl_down(part, 2)
                part = part + T.shfl_down(part, 1)
                if tx == 0:
                    B[bx] = part

    a, b = floats(), np.zeros(BLOCKS, np.float32)
    run_on_cpu(block_sum, a, b)
    np.testing.assert_allclose(b, a.reshape(BLOCKS, -1).sum(1), rtol=1e-4, atol=1e-4)


def test_votes_matches_and_shuffles() -> None:
    rows = 10

    @T.prim_func
    def votes(A: T.Tensor((256,), "int32"), B: T.Tensor((rows, 256), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            holds = A[tx] > 0
            B[0, tx] = T.any_sync(holds)
            B[1, tx] = T.all_sync(holds)
            B[2, tx] = T.cast(T.ballot_sync(holds), "int32")
            B[3, tx] = T.syncthreads_count(holds)
            B[4, tx] = T.cast(T.match_any_sync(A[tx]), "int32")
            B[5, tx] = T.shfl_sync(A[tx], tx + 1)
            B[6, tx] = T.shfl_up(A[tx], 3, 8)
            B[7, tx] = T.shfl_down(A[tx], 3, 8)
            B[8, tx] = T.warp_reduce_max(A[tx])
            B[9, tx] = T.cast(T.match_all_sync(A[tx]), "int32")

    a = np.random.default_rng(1).integers(-1, 5, 256).astype(np.int32)
    a[32:64], a[64:96] = 7, 0
    b = np.zeros((rows, 256), np.int32)
    run_on_cpu(votes, a, b)
    warps, lanes = a.reshape(8, 32), np.arange(32)
    holds = warps > 0
    ballot = (holds.astype(np.uint32) << lanes.astype(np.uint32)).sum(1, dtype=np.uint32)
    same = (warps[:, :, None] == warps[:, None, :]).astype(np.uint32)
    peers = (same << lanes.astype(np.uint32)).sum(2, dtype=np.uint32)
    eights = a.reshape(32, 8)
    up, down = eights.copy(), eights.copy()
    up[:, 3:], down[:, :5] = eights[:, :5], eights[:, 3:]
    uniform = (warps == warps[:, :1]).all(1)
    want = [
        holds.any(1).repeat(32), holds.all(1).repeat(32), ballot.repeat(32).view(np.int32),
        np.full(256, holds.sum()), peers.reshape(-1).view(np.int32),
        np.roll(warps, -1, 1).reshape(-1), up.reshape(-1), down.reshape(-1),
        warps.max(1).repeat(32), np.where(uniform, -1, 0).repeat(32),
    ]  # fmt: skip
    for row, expected in zip(b, want, strict=True):
        np.testing.assert_array_equal(row, expected)


def test_while_over_a_block_vote() -> None:
    @T.prim_func
    def collatz(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            value = T.alloc_var("int32")
            steps = T.alloc_var("int32")
            value = A[tx]
            steps = 0
            while T.syncthreads_or(value > 1) != 0:
                if value > 1:
                    value = T.if_then_else(value % 2 == 0, value // 2, 3 * value + 1)
                    steps = steps + 1
            B[tx] = steps

    def length(value: int) -> int:
        steps = 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        return steps

    a, b = np.arange(1, 257, dtype=np.int32), np.zeros(256, np.int32)
    run_on_cpu(collatz, a, b)
    assert b.tolist() == [length(int(v)) for v in a]


def test_atomics_outside_parallel_loops_count_every_thread() -> None:
    @T.prim_func
    def count(A: T.Tensor((2,), "int32")):
        with T.Kernel(40, threads=128):
            T.atomic_add(A[0], 1)
            before = T.atomic_add(A[1], 2, return_prev=True)
            T.atomic_max(A[1], before)

    a = np.zeros(2, np.int32)
    run_on_cpu(count, a)
    assert a.tolist() == [40 * 128, 2 * 40 * 128]


def test_a_grid_barrier_ends_a_launch() -> None:
    @T.prim_func
    def two_phase(A: T.Tensor((BLOCKS,), "int32"), B: T.Tensor((BLOCKS,), "int32")):
        with T.Kernel(BLOCKS, threads=32) as bx:
            A[bx] = bx + 1
            T.sync_grid()
            B[bx] = A[BLOCKS - 1 - bx]

    a, b = np.zeros(BLOCKS, np.int32), np.zeros(BLOCKS, np.int32)
    run_on_cpu(two_phase, a, b)
    assert b.tolist() == [4, 3, 2, 1]


def divergent_barrier() -> PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            if tx < 128:
                A[tx] = 1
                T.sync_threads()
                A[tx] = 2

    return kernel


def thread_index_in_parallel() -> PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            for i in T.Parallel(256):
                A[i] = tx

    return kernel


def uneven_loop_with_barrier() -> PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            for i in T.serial(tx):
                A[tx] = i
                T.sync_threads()

    return kernel


def tile_kept_across_grid_barrier() -> PrimFunc:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tile = T.alloc_shared((64,), "int32")
            T.copy(A[bx * 64], tile)
            T.sync_grid()
            T.copy(tile, B[bx * 64])

    return kernel


@pytest.mark.parametrize(
    ("make", "code", "name"),
    [
        (divergent_barrier, "TL510", "T.sync_threads"),
        (thread_index_in_parallel, "TL413", "T.Parallel"),
        (uneven_loop_with_barrier, "TL510", "T.sync_threads"),
        (tile_kept_across_grid_barrier, "TL413", "tile"),
    ],
)
def test_what_needs_real_threads_is_refused_by_name(make, code, name) -> None:
    (found,) = refusals(make())
    assert found.code == code
    assert name in found.message
    assert found.span is not None and found.span.file == __file__
    assert found.help
