"""Correct kernels whose generated code the mutation test damages: small, twice around each ring.

Which inputs they get and what is right is in `subjects.py`.
"""

from __future__ import annotations

from typing import Any

import tilelang.language as T


def gemm_plain(M: int = 60, N: int = 72, K: int = 120) -> Any:
    """No pipelining; extents that are no multiples of the tiles."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(K, 32)):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main


def gemm_ring(M: int = 64, N: int = 64, K: int = 288) -> Any:
    """cp.async into a ring of three, and the result through shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            c_tile = T.alloc_shared((32, 32), "float16")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, c_tile)
            T.copy(c_tile, C[by * 32, bx * 32])

    return main


def gemm_scheduled(M: int = 64, N: int = 64, K: int = 200) -> Any:
    """Stages and order by hand: B is loaded one round later than A, and after the product."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), order=[0, 2, 1], stage=[0, 1, 2]):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main


def gemm_registers(M: int = 64, N: int = 64, K: int = 160) -> Any:
    """A goes to registers; B, stored the other way round, is multiplied from shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            a = T.alloc_shared((32, 32), "float16")
            a_regs = T.alloc_fragment((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[bx * 32, k * 32], b)
                T.copy(a, a_regs)
                T.gemm(a_regs, b, c, transpose_B=True)
            T.copy(c, C[by * 32, bx * 32])

    return main


def split_k_atomic(M: int = 32, N: int = 40, K: int = 288, parts: int = 3) -> Any:
    """Blocks add their parts of the product to C."""
    steps = K // 32 // parts

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 32), parts, threads=64) as (bx, bz):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(steps):
                T.copy(A[0, (bz * steps + k) * 32], a)
                T.copy(B[(bz * steps + k) * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.atomic_add(C[0, bx * 32], c)

    return main


def split_k_last(M: int = 32, N: int = 64, K: int = 256, parts: int = 4) -> Any:
    """Blocks leave their parts in memory; the last one to come adds them all."""
    steps = K // 32 // parts

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        P: T.Tensor((parts, M, N), "float32"), count: T.Tensor((N // 32,), "int32"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(N // 32, parts, threads=64) as (bx, bz):
            tx = T.get_thread_binding()
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            before = T.alloc_shared((1,), "int32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(steps):
                T.copy(A[0, (bz * steps + k) * 32], a)
                T.copy(B[(bz * steps + k) * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, P[bz, 0, bx * 32])
            T.sync_threads()
            if tx == 0:
                before[0] = T.atomic_add(count[bx], 1, memory_order="acq_rel", return_prev=True)
            T.sync_threads()
            if before[0] == parts - 1:
                for i, j in T.Parallel(32, 32):
                    C[i, bx * 32 + j] = 0
                    for p in T.serial(parts):
                        C[i, bx * 32 + j] += P[p, i, bx * 32 + j]

    return main


def attention(heads: int = 2, length: int = 88, dim: int = 32) -> Any:
    """Causal flash attention, K and V in rings of two, the result through shared memory."""
    shape, rows, columns = (heads, length, dim), 32, 16
    scale = dim**-0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"), O: T.Tensor(shape, "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(length, rows), heads, threads=64) as (bx, by):
            q = T.alloc_shared((rows, dim), "float16")
            k = T.alloc_shared((columns, dim), "float16")
            v = T.alloc_shared((columns, dim), "float16")
            o_tile = T.alloc_shared((rows, dim), "float16")
            s = T.alloc_fragment((rows, columns), "float32")
            p = T.alloc_fragment((rows, columns), "float16")
            o = T.alloc_fragment((rows, dim), "float32")
            top = T.alloc_fragment((rows,), "float32")
            top_before = T.alloc_fragment((rows,), "float32")
            shrink = T.alloc_fragment((rows,), "float32")
            sums = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(Q[by, bx * rows, 0], q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -1e30)
            for n in T.Pipelined(T.ceildiv((bx + 1) * rows, columns), num_stages=2):
                T.copy(K[by, n * columns, 0], k)
                for i, j in T.Parallel(rows, columns):
                    s[i, j] = T.if_then_else(
                        bx * rows + i >= n * columns + j, 0, -T.infinity("float32")
                    )
                T.gemm(q, k, s, transpose_B=True)
                T.copy(top, top_before)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(rows):
                    shrink[i] = T.exp2((top_before[i] - top[i]) * scale)
                for i, j in T.Parallel(rows, columns):
                    s[i, j] = T.exp2((s[i, j] - top[i]) * scale)
                T.reduce_sum(s, sums, dim=1)
                for i in T.Parallel(rows):
                    total[i] = total[i] * shrink[i] + sums[i]
                T.copy(s, p)
                for i, j in T.Parallel(rows, dim):
                    o[i, j] *= shrink[i]
                T.copy(V[by, n * columns, 0], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(rows, dim):
                o[i, j] /= total[i]
            T.copy(o, o_tile)
            T.copy(o_tile, O[by, bx * rows, 0])

    return main


def row_norms(M: int = 6, N: int = 500) -> Any:
    """Largest element and sum of each row, over four warps that meet twice."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), top: T.Tensor((M,), "float32"),
        total: T.Tensor((M,), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, 2), threads=128) as bx:
            rows = T.alloc_shared((2, 512), "float32")
            part = T.alloc_fragment((2, 512), "float32")
            largest = T.alloc_fragment((2,), "float32")
            sums = T.alloc_fragment((2,), "float32")
            T.copy(A[bx * 2, 0], rows)
            T.copy(rows, part)
            T.reduce_max(part, largest, dim=1)
            T.reduce_sum(part, sums, dim=1)
            T.copy(largest, top[bx * 2])
            T.copy(sums, total[bx * 2])

    return main


def scan(N: int = 256) -> Any:
    """Sums of all elements up to each one, by doubling."""

    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            sums = T.alloc_shared((N,), "int32")
            left = T.alloc_var("int32", 0)
            sums[tx] = A[tx]
            T.sync_threads()
            for step in T.serial(8):
                left = 0
                if tx >= (1 << step):
                    left = sums[tx - (1 << step)]
                T.sync_threads()
                sums[tx] = sums[tx] + left
                T.sync_threads()
            B[tx] = sums[tx]

    return main


def tile_scan(M: int = 3, N: int = 200) -> Any:
    """The same as a tile operation, for rows."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int32")):
        with T.Kernel(M, threads=128) as bx:
            tile = T.alloc_shared((1, N), "int32")
            sums = T.alloc_shared((1, N), "int32")
            T.copy(A[bx, 0], tile)
            T.cumsum(tile, sums, dim=1)
            T.copy(sums, B[bx, 0])

    return main


def transpose(M: int = 56, N: int = 72) -> Any:
    """Through a tile of shared memory, twice."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            tile = T.alloc_shared((32, 32), "float32")
            turned = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], tile)
            for i, j in T.Parallel(32, 32):
                turned[i, j] = tile[j, i]
            T.copy(turned, B[bx * 32, by * 32])

    return main


def top_k(rows: int = 2, N: int = 512, k: int = 24) -> Any:
    """The k largest of each row, in any order: radix selection by histograms."""
    threads = 256

    @T.prim_func
    def main(A: T.Tensor((rows, N), "uint32"), top: T.Tensor((rows, k), "uint32")):
        with T.Kernel(rows, threads=threads) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((257,), "int32")
            bound = T.alloc_shared((1,), "int32")
            found = T.alloc_shared((1,), "int32")
            ties = T.alloc_shared((1,), "int32")
            prefix = T.alloc_var("uint32", 0)
            remaining = T.alloc_var("int32", k)
            partial = T.alloc_var("int32", 0)
            if tx == 0:
                found[0] = 0
                ties[0] = 0
                counts[256] = 0
            for r in T.serial(4):
                shift = T.cast(24 - 8 * r, "uint32")
                counts[tx] = 0
                T.sync_threads()
                for t in T.serial(N // threads):
                    key = A[bx, t * threads + tx]
                    if (key >> (shift + 7)) >> 1 == prefix:
                        T.atomic_add(counts[T.cast((key >> shift) & 0xFF, "int32")], 1)
                T.sync_threads()
                for step in T.serial(8):
                    partial = 0
                    if tx + (1 << step) < 256:
                        partial = counts[tx + (1 << step)]
                    T.sync_threads()
                    counts[tx] = counts[tx] + partial
                    T.sync_threads()
                if counts[tx] >= remaining and counts[tx + 1] < remaining:
                    bound[0] = tx
                T.sync_threads()
                limit = bound[0]
                above = counts[limit + 1]
                for t in T.serial(N // threads):
                    key = A[bx, t * threads + tx]
                    byte = T.cast((key >> shift) & 0xFF, "int32")
                    if (key >> (shift + 7)) >> 1 == prefix:
                        if byte > limit:
                            slot = T.atomic_add(found[0], 1, return_prev=True)
                            top[bx, slot] = key
                        elif byte == limit and r == 3:
                            tie = T.atomic_add(ties[0], 1, return_prev=True)
                            if tie < remaining - above:
                                top[bx, k - 1 - tie] = key
                remaining = remaining - above
                prefix = (prefix << 8) | T.cast(limit, "uint32")
                T.sync_threads()

    return main


def handover() -> Any:
    """Two warps write what two others read, and back, at named barriers."""

    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "int32")
            lanes = T.alloc_shared((64,), "int32")
            if tx < 64:
                for r in T.serial(4):
                    tile[tx] = A[r, tx]
                    T.sync_threads(1, 128)
                    T.sync_threads(2, 128)
            else:
                for r in T.serial(4):
                    T.sync_threads(1, 128)
                    lanes[tx - 64] = tile[127 - tx]
                    T.sync_warp()
                    B[r, tx - 64] = lanes[(tx - 64) ^ 1]
                    T.sync_threads(2, 128)

    return main
