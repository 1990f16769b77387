"""Kernels that do much beside multiplying, put together from parts by a random generator.

Each part adds to the result what NumPy can say: it uses tiles that a warp loads, shared memory of
its own, registers of its own, or branches on the thread.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import tilelang.language as T

# What a kernel may do besides: in the loop, after it, and in a second loop.
PARTS: Final = ("own", "scaled", "sums", "let", "repeat", "some", "apart", "outer", "again")


@dataclass(frozen=True, slots=True)
class Mixed:
    """One kernel: rows of A, its columns, where its loop starts, how many versions, its parts."""

    groups: int
    K: int
    first: int
    stages: int
    parts: frozenset[str]

    def __str__(self) -> str:
        said = "_".join(p for p in PARTS if p in self.parts) or "plain"
        return f"{said}_{self.groups}x{self.K}_{self.first}_{self.stages}"


def drawn(seed: int) -> Mixed:
    """A kernel of some parts."""
    rng = random.Random(seed)
    parts = frozenset(p for p in PARTS if rng.random() < 0.4)
    columns = rng.choice((64, 200, 264, 328))
    first = rng.choice((-1, 0, 0, 1)) if columns > 64 else 0
    return Mixed(rng.choice((1, 2)), columns, first, rng.choice((2, 3)), parts)


def kernel(case: Mixed) -> Any:
    """The kernel, as its author would write it."""
    M, N, K, has = 64 * case.groups, 128, case.K, case.parts
    threads = 128 * case.groups

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            A_s = T.alloc_shared((M, 64), "float16")
            B_s = T.alloc_shared((64, N), "float16")
            Z_s = T.alloc_shared((64, N), "float16")
            D_s = T.alloc_shared((M, 32), "float16")
            E_s = T.alloc_shared((32, N), "float16")
            own_s = T.alloc_shared((threads,), "float32")
            left = T.alloc_shared((64,), "float32")
            right = T.alloc_shared((64,), "float32")
            rows = T.alloc_fragment((M,), "float32")
            total = T.alloc_fragment((M,), "float32")
            out = T.alloc_fragment((M, N), "float32")
            T.clear(out)
            T.clear(total)
            own_s[tx] = 0
            for k in T.Pipelined(case.first, T.ceildiv(K, 64), num_stages=case.stages):
                T.copy(A[0:M, k * 64 : k * 64 + 64], A_s)
                if "own" in has:
                    own_s[tx] += T.cast(A_s[tx // 2, tx % 2], "float32")
                T.copy(B[k * 64 : k * 64 + 64, 0:N], B_s)
                if "let" in has:
                    corner = T.cast(B_s[1, 2], "float32")
                    for i, j in T.Parallel(M, N):
                        out[i, j] += corner
                T.gemm(A_s, B_s, out)
                if "scaled" in has:
                    for i, j in T.Parallel(64, N):
                        Z_s[i, j] = B_s[i, j] * T.float16(0.5)
                    if k != 1:
                        T.gemm(A_s, Z_s, out)
                if "repeat" in has:
                    turn = T.alloc_var("int32", init=0)
                    while turn < 2:
                        for i, j in T.Parallel(M, N):
                            out[i, j] += T.cast(A_s[i, 3], "float32")
                        turn = turn + 1
                if "some" in has:
                    if tx < 64:
                        own_s[tx] += T.cast(B_s[tx, 0], "float32")
                    else:
                        own_s[tx] += 1
                if "sums" in has:
                    T.reduce_sum(out, rows, dim=1)
                    for i in T.Parallel(M):
                        total[i] += rows[i]
            if "apart" in has:
                if tx < 64:
                    left[tx] = tx
                    for _i in T.serial(5):
                        left[tx] = left[tx] * 2 + 1
                    own_s[tx] += left[tx]
                elif tx < 128:
                    right[tx - 64] = tx
                    for _i in T.serial(9):
                        right[tx - 64] = right[tx - 64] + 2
                    own_s[tx] += right[tx - 64]
            if "outer" in has:
                T.copy(B[0:64, 0:N], Z_s)
                for i, j in T.Parallel(M, N):
                    out[i, j] += Z_s[i % 64, N - 1 - j]
            for i, j in T.Parallel(M, N):
                out[i, j] += own_s[i * 2 + j % 2] + total[i]
            if "again" in has:
                for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                    T.copy(A[0:M, k * 32 : k * 32 + 32], D_s)
                    T.copy(B[k * 32 : k * 32 + 32, 0:N], E_s)
                    T.gemm(D_s, E_s, out)
            T.copy(out, C)

    return main


def inputs(case: Mixed) -> tuple[Any, Any]:
    """A and B."""
    rng = np.random.default_rng(case.K)
    shapes = ((64 * case.groups, case.K), (case.K, 128))
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
    return a, b


def reference(case: Mixed, a: Any, b: Any) -> Any:
    """What the kernel should give, in float64."""
    M, N, K, has = 64 * case.groups, 128, case.K, case.parts
    wide = 64 * -(-K // 64)
    padded_a, padded_b = np.zeros((M, 64 + wide)), np.zeros((64 + wide, N))
    padded_a[:, 64 : 64 + K], padded_b[64 : 64 + K] = a, b
    out, total, own = np.zeros((M, N)), np.zeros(M), np.zeros(2 * M)
    thread = np.arange(2 * M)
    for k in range(case.first, -(-K // 64)):
        at = slice(64 + k * 64, 128 + k * 64)
        left, right = padded_a[:, at], padded_b[at]
        product = left @ right
        own += left[thread // 2, thread % 2] * ("own" in has)
        out += right[1, 2] * ("let" in has) + product
        out += 0.5 * product * ("scaled" in has and k != 1)
        out += 2 * left[:, 3:4] * ("repeat" in has)
        own[:64] += right[:64, 0] * ("some" in has)
        own[64:] += "some" in has
        total += out.sum(1) * ("sums" in has)
    if "apart" in has:
        own[:64] += np.arange(64) * 32 + 31
        own[64:128] += np.arange(64, 128) + 18
    if "outer" in has:
        out += padded_b[64:128][np.arange(M) % 64, ::-1]
    out += own.reshape(M, 2)[:, np.arange(N) % 2] + total[:, None]
    return out + a.astype(float) @ b.astype(float) * ("again" in has)
