"""Kernels whose machine code is looked into. A comment names the statement on its line."""

from __future__ import annotations

from pathlib import Path

import tilelang.language as T


@T.prim_func
def matmul(
    A: T.Tensor((512, 4096), "float16"),
    B: T.Tensor((4096, 512), "float16"),
    C: T.Tensor((512, 512), "float32"),
):
    with T.Kernel(8, 8, threads=128) as (bx, by):
        A_s = T.alloc_shared((64, 32), "float16")
        B_s = T.alloc_shared((32, 64), "float16")
        C_l = T.alloc_fragment((64, 64), "float32")
        T.clear(C_l)
        for k in T.Pipelined(128, num_stages=3):  # steps
            T.copy(A[by * 64, k * 32], A_s)  # copy A
            T.copy(B[k * 32, bx * 64], B_s)  # copy B
            T.gemm(A_s, B_s, C_l)  # gemm
        T.copy(C_l, C[by * 64, bx * 64])  # store C


@T.macro
def rescale(acc, factor, rows, columns):
    for i, j in T.Parallel(rows, columns):
        acc[i, j] *= factor[i]  # in a macro


@T.prim_func
def attention(
    Q: T.Tensor((2, 4096, 64), "float16"),
    K: T.Tensor((2, 4096, 64), "float16"),
    V: T.Tensor((2, 4096, 64), "float16"),
    O: T.Tensor((2, 4096, 64), "float16"),
):
    with T.Kernel(64, 2, threads=128) as (bx, head):
        Q_s = T.alloc_shared((64, 64), "float16")
        K_s = T.alloc_shared((64, 64), "float16")
        V_s = T.alloc_shared((64, 64), "float16")
        scores = T.alloc_fragment((64, 64), "float32")
        weights = T.alloc_fragment((64, 64), "float16")
        out = T.alloc_fragment((64, 64), "float32")
        peak = T.alloc_fragment((64,), "float32")
        before = T.alloc_fragment((64,), "float32")
        shrink = T.alloc_fragment((64,), "float32")
        part = T.alloc_fragment((64,), "float32")
        total = T.alloc_fragment((64,), "float32")
        T.copy(Q[head, bx * 64, 0], Q_s)  # copy Q
        T.clear(out)
        T.clear(total)
        T.fill(peak, -T.infinity("float32"))
        for k in T.Pipelined(64, num_stages=2):  # steps of attention
            T.copy(K[head, k * 64, 0], K_s)  # copy K
            T.copy(V[head, k * 64, 0], V_s)  # copy V
            T.clear(scores)
            T.gemm(Q_s, K_s, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)  # Q K
            T.copy(peak, before)
            T.reduce_max(scores, peak, dim=1, clear=False)  # peaks
            for i in T.Parallel(64):
                shrink[i] = T.exp2(before[i] - peak[i])
            for i, j in T.Parallel(64, 64):
                scores[i, j] = T.exp2(scores[i, j] - peak[i])
            T.reduce_sum(scores, part, dim=1)  # sums
            for i in T.Parallel(64):
                total[i] = total[i] * shrink[i] + part[i]
            rescale(out, shrink, 64, 64)
            T.copy(scores, weights)
            T.gemm(weights, V_s, out, policy=T.GemmWarpPolicy.FullRow)  # P V
        for i, j in T.Parallel(64, 64):
            out[i, j] /= total[i]
        T.copy(out, O[head, bx * 64, 0])  # store O


@T.prim_func
def sums(A: T.Tensor((64, 1024), "float32"), C: T.Tensor((64,), "float32"), n: T.int32):
    with T.Kernel(64, threads=32) as bx:
        tx = T.get_thread_binding()
        acc = T.alloc_var("float32")
        acc = 0.0
        for i in T.serial(n):  # outer
            for j in T.serial(n):  # inner
                acc += A[bx, (i * n + j) * 32 + tx]  # load
            T.sync_threads()  # barrier
        if tx == 0:
            C[bx] = acc


@T.prim_func
def columns(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared((32, 32), "float32")
        T.annotate_layout({tile: T.Layout((32, 32), lambda i, j: i * 32 + j)})
        tx = T.get_thread_binding()
        T.copy(A, tile)
        for j in T.serial(32):
            C[tx, j] = tile[tx, j]  # read by columns


@T.prim_func
def two_launches(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 2.0
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = B[bx * 128 + i] + 1.0


@T.prim_func
def handed_over(A: T.Tensor((4096, 128), "float32"), C: T.Tensor((4096, 128), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        S = T.alloc_shared((128,), "float32")
        full = T.alloc_barrier(128)
        for k in T.serial(4096):  # rounds
            S[tx] = A[k, tx]
            T.barrier_arrive(full)
            T.barrier_wait(full, k % 2)  # wait
            C[k, tx] = S[127 - tx]
            T.sync_threads()


def line_of(mark: str) -> int:
    """The line with this comment."""
    (found,) = (
        n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith(f"# {mark}")
    )  # fmt: skip
    return found
