"""Ordinary kernels of which the compiler makes warps that load and warps that compute."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.gpu.gemms import inputs as gemm_inputs
from tests.gpu.gemms import reference as gemm_reference
from tests.kernels.case import KernelCase


def product(
    M: int, N: int, K: int, tile: tuple[int, int, int], dtype: str = "float16",
    sums: str = "float32", out: str = "float32", transpose_A: bool = False,
    transpose_B: bool = False, groups: int = 2, stages: int = 3, other: str | None = None,
) -> Any:  # fmt: skip
    """A product, tile by tile, as anybody would write it."""
    block_M, block_N, block_K = tile
    a_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    b_tile = (block_N, block_K) if transpose_B else (block_K, block_N)

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if transpose_A else (M, K), dtype),
        B: T.Tensor((N, K) if transpose_B else (K, N), other or dtype),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128 * groups) as (
            bx,
            by,
        ):
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, other or dtype)
            C_l = T.alloc_fragment((block_M, block_N), sums)
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if transpose_A:
                    T.copy(A[k * block_K, by * block_M], A_s)
                else:
                    T.copy(A[by * block_M, k * block_K], A_s)
                if transpose_B:
                    T.copy(B[bx * block_N, k * block_K], B_s)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def attention(length: int, heads: int, dim: int, block_M: int, block_N: int, causal: bool) -> Any:
    """Softmax between two products; how many blocks of keys there are follows from the block."""
    shape = (length, heads, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"), Out: T.Tensor(shape, "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(length, block_M), heads, threads=256) as (bx, by):
            Q_s = T.alloc_shared((block_M, dim), "float16")
            K_s = T.alloc_shared((block_N, dim), "float16")
            V_s = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), "float16")
            out = T.alloc_fragment((block_M, dim), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            row = T.alloc_fragment((block_M,), "float32")
            first = bx * block_M
            T.copy(Q[first : first + block_M, by, :], Q_s)
            T.clear(out)
            T.clear(total)
            steps = T.ceildiv(length, block_N)
            if causal:
                steps = T.min(steps, T.ceildiv(first + block_M, block_N))
            for k in T.Pipelined(steps, num_stages=2):
                T.copy(K[k * block_N : (k + 1) * block_N, by, :], K_s)
                T.clear(scores)
                T.gemm(Q_s, K_s, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_M, block_N):
                    at = k * block_N + j
                    seen = at < length and (not causal or first + i >= at)
                    scores[i, j] = T.if_then_else(seen, T.exp(scores[i, j] * 0.125), 0)
                T.copy(V[k * block_N : (k + 1) * block_N, by, :], V_s)
                T.reduce_sum(scores, row, dim=1)
                for i in T.Parallel(block_M):
                    total[i] += row[i]
                T.copy(scores, weights)
                T.gemm(weights, V_s, out, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                out[i, j] /= total[i]
            T.copy(out, Out[first : first + block_M, by, :])

    return main


def two_sums(M: int, N: int, K: int, L: int, first: int) -> Any:
    """A @ B over the end of K, scaled, and D @ E: a loop for each, with tiles of its own."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, L), "float16"), E: T.Tensor((L, N), "float16"),
        scale: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=256) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            D_s = T.alloc_shared((128, 32), "float16")
            E_s = T.alloc_shared((32, 128), "float16")
            scale_s = T.alloc_shared((128,), "float32")
            C_l = T.alloc_fragment((128, 128), "float32")
            m, n = by * 128, bx * 128
            T.clear(C_l)
            for k in T.Pipelined(first, T.ceildiv(K, 64), num_stages=3):
                T.copy(A[m, k * 64], A_s)
                T.copy(B[k * 64, n], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(scale[n], scale_s)
            for i, j in T.Parallel(128, 128):
                C_l[i, j] *= scale_s[j]
            for k in T.Pipelined(T.ceildiv(L, 32), num_stages=2):
                T.copy(D[m, k * 32], D_s)
                T.copy(E[k * 32, n], E_s)
                T.gemm(D_s, E_s, C_l)
            T.copy(C_l, C[m, n])

    return main


def paged(M: int, dim: int, pages: int, page: int) -> Any:
    """Each block multiplies with the pages that its row of a table names, as many as it says."""

    @T.prim_func
    def main(
        A: T.Tensor((2, M, dim), "float16"), pool: T.Tensor((pages, page, dim), "float16"),
        table: T.Tensor((2, pages), "int32"), used: T.Tensor((2,), "int32"),
        C: T.Tensor((2, M, page), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=256) as b:
            A_s = T.alloc_shared((M, dim), "float16")
            P_s = T.alloc_shared((page, dim), "float16")
            C_l = T.alloc_fragment((M, page), "float32")
            T.copy(A[b, 0, 0], A_s)
            T.clear(C_l)
            for k in T.Pipelined(used[b], num_stages=2):
                number = table[b, k]
                T.copy(pool[number, 0, 0], P_s)
                T.gemm(A_s, P_s, C_l, transpose_B=True)
            T.copy(C_l, C[b, 0, 0])

    return main


def persistent(M: int, N: int, K: int, blocks: int) -> Any:
    """A few blocks, each of which multiplies one tile after another."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):  # fmt: skip
        with T.Kernel(blocks, threads=256) as block:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            C_s = T.alloc_shared((128, 128), "float16")
            for by, bx in T.Persistent([T.ceildiv(M, 128), T.ceildiv(N, 128)], blocks, block):
                T.clear(C_l)
                for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                    T.copy(A[by * 128, k * 64], A_s)
                    T.copy(B[k * 64, bx * 128], B_s)
                    T.gemm(A_s, B_s, C_l)
                T.copy(C_l, C_s)
                T.copy(C_s, C[by * 128, bx * 128])

    return main


def grouped(rows: int, groups: int, N: int, K: int) -> Any:
    """Each group of rows by a matrix of its own; a group may have no rows of a block."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), "float16"), B: T.Tensor((groups, K, N), "float16"),
        starts: T.Tensor((groups + 1,), "int32"), C: T.Tensor((rows, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 128), threads=256) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            for g in T.serial(groups):
                first = starts[g]
                for part in T.serial(T.ceildiv(starts[g + 1] - first, 128)):
                    T.clear(C_l)
                    for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                        T.copy(A[first + part * 128, k * 64], A_s)
                        T.copy(B[g, k * 64, bx * 128], B_s)
                        T.gemm(A_s, B_s, C_l)
                    for i, j in T.Parallel(128, 128):
                        if first + part * 128 + i < starts[g + 1] and bx * 128 + j < N:
                            C[first + part * 128 + i, bx * 128 + j] = C_l[i, j]

    return main


def grouped_inputs(
    rng: np.random.Generator, rows: int, groups: int, N: int, K: int
) -> tuple[Any, ...]:
    cuts = np.sort(rng.integers(0, rows, groups - 1))
    cuts[1:2] = cuts[0]  # an empty one
    starts = np.array([0, *cuts, rows], np.int32)
    tiles = ((rows, K), (groups, K, N))
    return (*(rng.standard_normal(s).astype(np.float16) for s in tiles), starts)


def grouped_reference(a: Any, b: Any, starts: Any, **_: Any) -> tuple[Any, ...]:
    parts = [a[starts[g] : starts[g + 1]] @ b[g] for g in range(len(b))]
    return (np.concatenate(parts),)


def attention_inputs(
    rng: np.random.Generator, length: int, heads: int, dim: int, **_: Any
) -> tuple[Any, ...]:
    shape = (length, heads, dim)
    return tuple(rng.standard_normal(shape).astype(np.float16) for _ in range(3))


def attention_reference(q: Any, k: Any, v: Any, causal: bool, **_: Any) -> tuple[Any, ...]:
    scores = np.exp(np.einsum("ihd,jhd->hij", q, k) * 0.125)
    if causal:
        scores = np.tril(scores)
    weights = scores / scores.sum(2, keepdims=True)
    return (np.einsum("hij,jhd->ihd", weights, v),)


def two_inputs(
    rng: np.random.Generator, M: int, N: int, K: int, L: int, **_: Any
) -> tuple[Any, ...]:
    tiles = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N), (M, L), (L, N)))
    return (*tiles, rng.standard_normal(N).astype(np.float32))


def two_reference(
    a: Any, b: Any, d: Any, e: Any, scale: Any, first: int, **_: Any
) -> tuple[Any, ...]:
    return (a[:, first * 64 :] @ b[first * 64 :] * scale + d @ e,)


def paged_inputs(
    rng: np.random.Generator, M: int, dim: int, pages: int, page: int
) -> tuple[Any, ...]:
    table = np.stack([rng.permutation(pages) for _ in range(2)]).astype(np.int32)
    used = np.array([pages - 1, 0], np.int32)
    tiles = ((2, M, dim), (pages, page, dim))
    return (*(rng.standard_normal(s).astype(np.float16) for s in tiles), table, used)


def paged_reference(
    a: Any, pool: Any, table: Any, used: Any, page: int, **_: Any
) -> tuple[Any, ...]:
    sums = np.zeros((2, a.shape[1], page))
    for b in range(2):
        for k in range(int(used[b])):
            sums[b] += a[b] @ pool[int(table[b, k])].T
    return (sums,)


def reference(a: Any, b: Any, **params: Any) -> tuple[Any, ...]:
    return gemm_reference(a, b, params.get("transpose_A", False), params.get("transpose_B", False))


def inputs(
    rng: np.random.Generator, M: int, N: int, K: int, dtype: str = "float16",
    transpose_A: bool = False, transpose_B: bool = False, other: str | None = None, **_: Any,
) -> tuple[Any, ...]:  # fmt: skip
    return gemm_inputs(rng, M, N, K, dtype, transpose_A, transpose_B, other)


def _product(
    name: str, precision: str = "float32", torch: bool = False, **sizes: Any
) -> KernelCase:
    return KernelCase(
        name=f"roles_{name}", row="roles", tier=4, style="prim_func", make=product, inputs=inputs,
        reference=reference, params=sizes, out_idx=(2,), targets=("cuda:sm_90a",),
        precision=(precision,), needs_torch=torch,
    )  # fmt: skip


def _other(name: str, make: Any, inputs: Any, reference: Any, out: int, **sizes: Any) -> KernelCase:
    return KernelCase(
        name=f"roles_{name}", row="roles", tier=4, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=sizes, out_idx=(out,), targets=("cuda:sm_90a",),
        precision=("float16",),
    )  # fmt: skip


_EDGES: dict[str, Any] = {"M": 200, "N": 264, "K": 208, "tile": (128, 128, 64)}

CASES: tuple[KernelCase, ...] = (
    *(
        _product(f"{'nt'[a]}{'nt'[b]}", **_EDGES, transpose_A=a, transpose_B=b)
        for a in (False, True) for b in (False, True)
    ),
    _product("bfloat16", "float32", True, **_EDGES, dtype="bfloat16", transpose_B=True),
    _product("e4m3fn", "float16", True, M=144, N=208, K=400, tile=(128, 128, 128),
             dtype="float8_e4m3fn", transpose_B=True),
    _product("int8", "int32", M=144, N=208, K=400, tile=(128, 128, 128), dtype="int8",
             sums="int32", out="int32", transpose_B=True),
    _product("half_result", "float16", **_EDGES, out="float16"),
    _product("one_group", M=136, N=136, K=520, tile=(64, 128, 64), groups=1),
    _product("three_groups", M=200, N=136, K=520, tile=(192, 128, 64), groups=3, stages=2),
    _product("wide", M=136, N=264, K=328, tile=(128, 256, 64), stages=4),
    _product("fewer_steps_than_stages", M=128, N=128, K=64, tile=(128, 128, 64), stages=4),
    *(
        _other(f"attention_{length}{'_causal' * causal}", attention, attention_inputs,
               attention_reference, 3, length=length, heads=2, dim=128, block_M=128, block_N=128,
               causal=causal)
        for length in (200, 384) for causal in (False, True)
    ),
    _other("two_loops", two_sums, two_inputs, two_reference, 5, M=136, N=136, K=328, L=104,
           first=2),
    *(
        _other(f"persistent_{blocks}", persistent, inputs, reference, 2, M=264, N=392, K=K,
               blocks=blocks)
        for blocks, K in ((4, 200), (5, 64))
    ),
    _other("grouped", grouped, grouped_inputs, grouped_reference, 3, rows=520, groups=5, N=136,
           K=136),
    _other("pages", paged, paged_inputs, paged_reference, 4, M=128, dim=64, pages=5, page=256),
)  # fmt: skip
