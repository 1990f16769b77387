"""Mixtures of experts: routing, sorting tokens by expert, grouped products, weighted sums."""

import itertools

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1, 2])
def route(tokens, experts, k, block_M=8, renormalise=True, dtype="float32"):
    """Softmax over experts and the `k` best of each token."""

    @T.prim_func
    def main(
        logits: T.Tensor((tokens, experts), dtype),
        weights: T.Tensor((tokens, k), "float32"),
        ids: T.Tensor((tokens, k), "int32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), threads=128) as bx:
            p = T.alloc_fragment((block_M, experts), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            index = T.alloc_fragment((block_M, experts), "int32")
            chosen = T.alloc_fragment((block_M,), "int32")
            picked = T.alloc_shared((block_M, k), "float32")
            T.copy(logits[bx * block_M : (bx + 1) * block_M, :], p)
            T.reduce_max(p, top, dim=1)
            for i, e in T.Parallel(block_M, experts):
                p[i, e] = T.exp(p[i, e] - top[i])
            T.reduce_sum(p, total, dim=1)
            for i, e in T.Parallel(block_M, experts):
                p[i, e] /= total[i]
            for r in range(k):
                T.reduce_max(p, top, dim=1)
                for i, e in T.Parallel(block_M, experts):
                    index[i, e] = e if p[i, e] == top[i] else experts
                T.reduce_min(index, chosen, dim=1)
                for i in T.Parallel(block_M):
                    picked[i, r] = top[i]
                    if bx * block_M + i < tokens:
                        ids[bx * block_M + i, r] = chosen[i]
                for i, e in T.Parallel(block_M, experts):
                    if e == chosen[i]:
                        p[i, e] = -1.0
            T.clear(total)
            for i in T.Parallel(block_M):
                for r in T.serial(k):
                    total[i] += picked[i, r]
            for i, r in T.Parallel(block_M, k):
                if bx * block_M + i < tokens:
                    weights[bx * block_M + i, r] = (
                        picked[i, r] / total[i] if renormalise else picked[i, r]
                    )

    return main


def inputs_route(rng, *, tokens, experts, **_):
    return (rng.standard_normal((tokens, experts)).astype(np.float32),)


def reference_route(x, *, k, renormalise=True, **_):
    p = np.exp(x - x.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    ids = np.argsort(-p, 1, kind="stable")[:, :k]
    w = np.take_along_axis(p, ids, 1)
    return (w / w.sum(1, keepdims=True) if renormalise else w), ids


@tilelang.jit
def align(ids, num_experts=5, block_M=16, threads=128):
    """Where each expert's tokens begin, padded to whole tiles; the order within one is any."""
    (n,) = (T.const("n"),)
    ids: T.Tensor((n,), T.int32)
    padded = T.ceildiv(n, block_M) * block_M + num_experts * block_M
    order = T.empty((padded,), T.int32)
    offsets = T.empty((num_experts + 1,), T.int32)
    tile_expert = T.empty((padded // block_M,), T.int32)
    with T.Kernel(1, threads=threads) as _:
        count = T.alloc_shared((num_experts,), T.int32)
        start = T.alloc_shared((num_experts + 1,), T.int32)
        tx = T.get_thread_binding(0)
        for i in T.Parallel(padded):
            order[i] = n
        T.fill(count, 0)
        for i in T.Parallel(n):
            T.atomic_add(count[ids[i]], 1)
        if tx == 0:
            start[0] = 0
            for e in T.serial(num_experts):
                start[e + 1] = start[e] + T.ceildiv(count[e], block_M) * block_M
        T.sync_threads()
        T.copy(start, offsets)
        for t in T.Parallel(padded // block_M):
            found = T.alloc_var(T.int32, init=-1)
            for e in T.serial(num_experts):
                if start[e] <= t * block_M and t * block_M < start[e + 1]:
                    found = e
            tile_expert[t] = found
        for i in T.Parallel(n):
            slot = T.atomic_add(start[ids[i]], 1, return_prev=True)
            order[slot] = i
    return order, offsets, tile_expert


def inputs_align(rng, *, n, num_experts=5, **_):
    return (rng.integers(0, num_experts - 1, n).astype(np.int32),)


def reference_align(ids, *, n, num_experts=5, block_M=16, **_):
    groups = [np.nonzero(ids == e)[0] for e in range(num_experts)]
    tiles = [-(-len(g) // block_M) for g in groups]
    padded = -(-n // block_M) * block_M + num_experts * block_M
    order = np.full(padded, n)
    starts = np.cumsum([0, *tiles]) * block_M
    for at, group in zip(starts, groups, strict=False):
        order[at : at + len(group)] = group
    owner = np.full(padded // block_M, -1)
    owner[: sum(tiles)] = np.repeat(np.arange(num_experts), tiles)
    return order, starts, owner


def any_order(block_M=16):
    """Tokens of one expert may stand in any order: each tile's range is sorted."""

    def sort(outputs):
        order, starts, owner = (np.array(x) for x in outputs)
        for a, b in itertools.pairwise(starts):
            order[a:b] = np.sort(order[a:b])
        return order, starts, owner

    return sort


@tilelang.jit(out_idx=-1, pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def grouped_gate_up(
    total, groups, hidden, inter, block_M=32, block_N=32, block_K=32, num_stages=2, threads=128,
    dtype=T.float16,
):  # fmt: skip
    """`silu(x Wg) * (x Wu)` of sorted tokens: a tile finds its expert in the offsets."""
    tiles = total // block_M + groups

    @T.prim_func
    def kernel(
        X: T.Tensor((total, hidden), dtype),
        W: T.Tensor((groups, 2, hidden, inter), dtype),
        offsets: T.Tensor((groups + 1,), T.int32),
        Y: T.Tensor((total, inter), dtype),
    ):
        with T.Kernel(tiles, T.ceildiv(inter, block_N), threads=threads) as (bx, by):
            x_s = T.alloc_shared((block_M, block_K), dtype)
            g_s = T.alloc_shared((block_K, block_N), dtype)
            u_s = T.alloc_shared((block_K, block_N), dtype)
            gate = T.alloc_fragment((block_M, block_N), T.float32)
            up = T.alloc_fragment((block_M, block_N), T.float32)
            expert = T.alloc_var(T.int32)
            first = T.alloc_var(T.int32)
            seen = T.alloc_var(T.int32)
            expert = -1
            first = 0
            seen = 0
            for g in T.serial(groups):
                mine = T.ceildiv(offsets[g + 1] - offsets[g], block_M)
                if bx >= seen and bx < seen + mine:
                    expert = g
                    first = offsets[g] + (bx - seen) * block_M
                seen += mine
            if expert >= 0:
                rows = T.min(block_M, offsets[expert + 1] - first)
                T.clear(gate)
                T.clear(up)
                for ko in T.Pipelined(T.ceildiv(hidden, block_K), num_stages=num_stages):
                    T.copy(X[first, ko * block_K], x_s)
                    T.copy(W[expert, 0, ko * block_K, by * block_N], g_s)
                    T.copy(W[expert, 1, ko * block_K, by * block_N], u_s)
                    T.gemm(x_s, g_s, gate)
                    T.gemm(x_s, u_s, up)
                for i, j in T.Parallel(block_M, block_N):
                    gate[i, j] = gate[i, j] / (1.0 + T.exp(-gate[i, j])) * up[i, j]
                for i, j in T.Parallel(block_M, block_N):
                    if i < rows and by * block_N + j < inter:
                        Y[first + i, by * block_N + j] = gate[i, j]

    return kernel


def inputs_gate_up(rng, *, total, groups, hidden, inter, **_):
    cuts = np.sort(rng.integers(0, total + 1, groups - 1))
    return (
        (rng.standard_normal((total, hidden)) / 4).astype(np.float16),
        (rng.standard_normal((groups, 2, hidden, inter)) / 2).astype(np.float16),
        np.array([0, *cuts, total], np.int32),
    )


def reference_gate_up(x, w, offsets, **_):
    out = np.zeros((x.shape[0], w.shape[3]))
    for g in range(len(w)):
        rows = slice(offsets[g], offsets[g + 1])
        gate = x[rows] @ w[g, 0]
        out[rows] = gate / (1 + np.exp(-gate)) * (x[rows] @ w[g, 1])
    return (out,)


def moe_gemm_gathered(num_experts=4, block_M=16, block_N=32, block_K=32, dtype="float16"):
    """Rows are gathered by the sorted order, of a number of tokens known when it runs."""
    tokens, padded, tiles = T.dynamic("tokens, padded, tiles")
    K, N, topk = 45, 50, 2

    @T.prim_func
    def main(
        X: T.Tensor((tokens, K), dtype),
        W: T.Tensor((num_experts, N, K), dtype),
        order: T.Tensor((padded,), "int32"),
        owner: T.Tensor((tiles,), "int32"),
        scale: T.Tensor((tokens * topk,), "float32"),
        Y: T.Tensor((tokens * topk, N), dtype),
    ):
        with T.Kernel(tiles, T.ceildiv(N, block_N), threads=64) as (bm, bn):
            A = T.alloc_shared((block_M, block_K), dtype)
            B = T.alloc_shared((block_N, block_K), dtype)
            C = T.alloc_fragment((block_M, block_N), "float32")
            T.use_swizzle(8)
            T.clear(C)
            if owner[bm] != -1:
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    for i, j in T.Parallel(block_M, block_K):
                        at = order[bm * block_M + i]
                        A[i, j] = T.if_then_else(
                            at < tokens * topk and k * block_K + j < K,
                            X[at // topk, k * block_K + j],
                            0,
                        )
                    T.copy(W[owner[bm], bn * block_N, k * block_K], B)
                    T.gemm(A, B, C, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    at = order[bm * block_M + i]
                    if at < tokens * topk:
                        Y[at, bn * block_N + j] = C[i, j] * scale[at]

    return main


def inputs_gathered(rng, *, M, num_experts=4, block_M=16, **_):
    ids = rng.integers(0, num_experts, 2 * M).astype(np.int32)
    order, _, owner = reference_align(ids, n=2 * M, num_experts=num_experts, block_M=block_M)
    return (
        rng.standard_normal((M, 45)).astype(np.float16),
        rng.standard_normal((num_experts, 50, 45)).astype(np.float16),
        order.astype(np.int32),
        owner.astype(np.int32),
        rng.uniform(0, 1, 2 * M).astype(np.float32),
        np.zeros((2 * M, 50), np.float16),
    )


def reference_gathered(x, w, order, owner, scale, y, *, block_M=16, **_):
    out = np.zeros_like(y)
    for tile, expert in enumerate(owner):
        at = order[tile * block_M : (tile + 1) * block_M]
        at = at[at < len(out)]
        out[at] = x[at // 2] @ w[expert].T * scale[at, None]
    return (out,)


@tilelang.jit
def combine(Y, weights, places, block_H=64, vec=4):
    """The weighted sum of what a token's experts gave; a place below 0 was dropped."""
    tokens, k, slots, H = T.const("tokens, k, slots, H")
    Y: T.Tensor((slots, H), T.float16)
    weights: T.Tensor((tokens, k), T.float32)
    places: T.Tensor((tokens, k), T.int32)
    out = T.empty((tokens, H), T.float16)
    with T.Kernel(tokens, T.ceildiv(H, block_H), threads=block_H // vec) as (t, bh):
        acc = T.alloc_local((vec,), T.float32)
        tx = T.get_thread_binding(0)
        col = bh * block_H + tx * vec
        for v in T.vectorized(vec):
            acc[v] = 0
        for r in T.serial(k):
            if places[t, r] < 0:
                continue
            for v in T.vectorized(vec):
                acc[v] += weights[t, r] * Y[places[t, r], col + v]
        for v in T.vectorized(vec):
            out[t, col + v] = acc[v]
    return out


def inputs_combine(rng, *, tokens, k, slots, H, **_):
    return (
        rng.standard_normal((slots, H)).astype(np.float16),
        rng.uniform(0, 1, (tokens, k)).astype(np.float32),
        rng.integers(-2, slots, (tokens, k)).astype(np.int32),
    )


def reference_combine(y, w, at, **_):
    return ((np.where(at < 0, 0, w)[..., None] * y[np.maximum(at, 0)]).sum(1),)


def silu_and_mul(dtype=T.bfloat16, block=256):
    """Halves of a row, gate and value; rows and columns are known when it runs."""
    rows = T.dynamic("rows")
    cols = T.dynamic("cols")

    @T.prim_func
    def kernel(X: T.Tensor((rows, 2 * cols), dtype), Y: T.Tensor((rows, cols), dtype)):
        with T.Kernel(rows, T.ceildiv(cols, block), threads=128) as (r, c):
            for j in T.Parallel(block):
                at = c * block + j
                if at < cols:
                    x = X[r, at].astype(T.float32)
                    Y[r, at] = (x * T.sigmoid(x)).astype(dtype) * X[r, cols + at]

    return kernel


def inputs_silu(rng, *, M, N, **_):
    import torch

    x = torch.from_numpy(rng.standard_normal((M, 2 * N)).astype(np.float32)).bfloat16()
    return x, torch.zeros((M, N), dtype=torch.bfloat16)


def reference_silu(x, y, **_):
    g, u = x[:, : y.shape[1]], x[:, y.shape[1] :]
    return (g / (1 + np.exp(-g)) * u,)
