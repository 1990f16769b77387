"""What a server runs around its products: rotary and caches, pages, windows, splits, sampling."""

import math

import numpy as np

import tilelang
import tilelang.language as T

LOG2E = 1.44269504


@tilelang.jit
def rope_and_cache(Q, K, V, cos_sin, positions, slots, k_cache, v_cache, block=64):
    """Rotates queries and keys in place and writes keys and values where the slots say."""
    tokens, heads, kv_heads, D, L, pages, page = T.const("tokens heads kv_heads D L pages page")
    Q: T.Tensor((tokens, heads, D), T.float16)
    K: T.Tensor((tokens, kv_heads, D), T.float16)
    V: T.Tensor((tokens, kv_heads, D), T.float16)
    cos_sin: T.Tensor((L, D), T.float32)
    positions: T.Tensor((tokens,), T.int64)
    slots: T.Tensor((tokens,), T.int64)
    k_cache: T.Tensor((pages, page, kv_heads, D), T.float16)
    v_cache: T.Tensor((pages, page, kv_heads, D), T.float16)
    half = D // 2

    with T.Kernel(tokens, threads=block) as t:
        pos = positions[t]
        slot = slots[t]
        angles = T.alloc_shared((D,), T.float32)
        T.copy(cos_sin[pos, :], angles)
        for h, i in T.Parallel(heads, half):
            x1 = Q[t, h, i].astype(T.float32)
            x2 = Q[t, h, i + half].astype(T.float32)
            Q[t, h, i] = x1 * angles[i] - x2 * angles[half + i]
            Q[t, h, i + half] = x2 * angles[i] + x1 * angles[half + i]
        if slot >= 0:
            p = slot // page
            r = slot % page
            for h, i in T.Parallel(kv_heads, half):
                x1 = T.cast(K[t, h, i], T.float32)
                x2 = T.cast(K[t, h, i + half], T.float32)
                k_cache[p, r, h, i] = x1 * angles[i] - x2 * angles[half + i]
                k_cache[p, r, h, i + half] = x2 * angles[i] + x1 * angles[half + i]
            T.copy(V[t, :, :], v_cache[p, r, :, :])


def inputs_rope(rng, *, tokens, heads, kv_heads, D, L, pages, page, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    angle = np.outer(np.arange(L), 1.0 / 100 ** (np.arange(D // 2) / (D // 2)))
    slots = rng.permutation(pages * page)[:tokens]
    slots[1] = -1
    return (
        draw(tokens, heads, D),
        draw(tokens, kv_heads, D),
        draw(tokens, kv_heads, D),
        np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32),
        rng.integers(0, L, tokens),
        slots,
        draw(pages, page, kv_heads, D),
        draw(pages, page, kv_heads, D),
    )


def reference_rope(q, k, v, cos_sin, at, slots, k_cache, v_cache, **_):
    half = q.shape[2] // 2
    c, s = cos_sin[at][:, None, :half], cos_sin[at][:, None, half:]

    def turn(x):
        left, right = x[..., :half], x[..., half:]
        return np.concatenate([left * c - right * s, right * c + left * s], -1)

    flat_k, flat_v = k_cache.reshape(-1, *k.shape[1:]), v_cache.reshape(-1, *v.shape[1:])
    used = slots >= 0
    flat_k[slots[used]] = turn(k)[used]
    flat_v[slots[used]] = v[used]
    return turn(q), k_cache, v_cache


@tilelang.jit(out_idx=[-1])
def gather_pages(batch, longest, kv_heads, dim, page, dtype="float16"):
    """A sample's pages side by side, zeros after its end; tables are of any width."""
    width = T.dynamic("width")
    num_pages = T.dynamic("num_pages")

    @T.prim_func
    def main(
        cache: T.Tensor((num_pages, page, kv_heads, dim), dtype),
        table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"),
        out: T.Tensor((batch, longest, kv_heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(longest, page), kv_heads, batch, threads=64) as (p, h, b):
            rows = T.alloc_shared((page, dim), dtype)
            if p * page < lengths[b]:
                T.copy(cache[table[b, p], :, h, :], rows)
            else:
                T.clear(rows)
            for i, d in T.Parallel(page, dim):
                if p * page + i >= lengths[b]:
                    rows[i, d] = 0
            T.copy(rows, out[b, p * page : (p + 1) * page, h, :])

    return main


def inputs_gather(rng, *, batch, longest, kv_heads, dim, page, **_):
    pages = 9
    return (
        rng.standard_normal((pages, page, kv_heads, dim)).astype(np.float16),
        rng.integers(0, pages, (batch, -(-longest // page) + 1)).astype(np.int32),
        rng.integers(0, longest + 1, batch).astype(np.int32),
    )


def reference_gather(cache, table, lengths, *, batch, longest, **_):
    out = np.zeros((batch, longest, *cache.shape[2:]))
    for b in range(batch):
        out[b, : lengths[b]] = cache[table[b]].reshape(-1, *cache.shape[2:])[: lengths[b]]
    return (out,)


@tilelang.jit(out_idx=[5])
def paged_prefill(
    heads, kv_heads, dim, page, block_M=32, pages_per_block=2, num_stages=1, softmax_scale=None
):
    """New tokens of several samples against their caches: each tile gathers two pages."""
    block_N = page * pages_per_block
    scale = (softmax_scale or 1 / math.sqrt(dim)) * LOG2E
    tokens, num_pages, batch, width = T.dynamic("tokens, num_pages, batch, width")

    @T.prim_func
    def kernel(
        Q: T.Tensor((tokens, heads, dim), T.float16),
        KV: T.Tensor((num_pages, 2, page, kv_heads, dim), T.float16),
        table: T.Tensor((batch, width), T.int32),
        cu_q: T.Tensor((batch + 1,), T.int32),
        lengths: T.Tensor((batch,), T.int32),
        O: T.Tensor((tokens, heads, dim), T.float16),
        longest: T.int32,
    ):
        with T.Kernel(T.ceildiv(longest, block_M), heads, batch, threads=128) as (bm, h, b):
            q_s = T.alloc_shared((block_M, dim), T.float16)
            k_s = T.alloc_shared((block_N, dim), T.float16)
            v_s = T.alloc_shared((block_N, dim), T.float16)
            s = T.alloc_fragment((block_M, block_N), T.float32)
            p = T.alloc_fragment((block_M, block_N), T.float16)
            o = T.alloc_fragment((block_M, dim), T.float32)
            m, m_old, l, part = [T.alloc_fragment((block_M,), T.float32) for _ in range(4)]
            start, count = cu_q[b], cu_q[b + 1] - cu_q[b]
            past = lengths[b] - count
            if bm * block_M < count:
                T.copy(Q[start + bm * block_M, h, 0:dim], q_s[0, :])
                for i, d in T.Parallel(block_M, dim):
                    q_s[i, d] = T.if_then_else(
                        bm * block_M + i < count, Q[start + bm * block_M + i, h, d], 0
                    )
                T.clear(o)
                T.clear(l)
                T.fill(m, -T.infinity(T.float32))
                last = T.min(lengths[b], past + (bm + 1) * block_M)
                for n in T.Pipelined(T.ceildiv(last, block_N), num_stages=num_stages):
                    for r in T.serial(pages_per_block):
                        at = table[b, n * pages_per_block + r]
                        T.copy(KV[at, 0, 0:page, h // (heads // kv_heads), :], k_s[r * page, 0])
                        T.copy(
                            KV[at, 1, 0:page, h // (heads // kv_heads), :],
                            v_s[r * page : (r + 1) * page, :],
                        )
                    T.clear(s)
                    T.gemm(q_s, k_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                    for i, j in T.Parallel(block_M, block_N):
                        visible = n * block_N + j <= past + bm * block_M + i
                        s[i, j] = T.if_then_else(visible, s[i, j] * scale, -T.infinity(T.float32))
                    T.copy(m, m_old)
                    T.reduce_max(s, m, dim=1, clear=False)
                    for i, j in T.Parallel(block_M, block_N):
                        s[i, j] = T.exp2(s[i, j] - m[i])
                    T.reduce_sum(s, part, dim=1)
                    for i in T.Parallel(block_M):
                        m_old[i] = T.exp2(m_old[i] - m[i])
                        l[i] = l[i] * m_old[i] + part[i]
                    for i, d in T.Parallel(block_M, dim):
                        o[i, d] *= m_old[i]
                    T.copy(s, p)
                    T.gemm(p, v_s, o, policy=T.GemmWarpPolicy.FullRow)
                for i, d in T.Parallel(block_M, dim):
                    if bm * block_M + i < count:
                        O[start + bm * block_M + i, h, d] = o[i, d] / l[i]

    return kernel


NEW, BEFORE = (5, 40, 1), (20, 0, 37)


def inputs_prefill(rng, *, heads, kv_heads, dim, page, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    lengths = np.add(NEW, BEFORE).astype(np.int32)
    return (
        draw(sum(NEW), heads, dim),
        draw(11, 2, page, kv_heads, dim),
        np.stack([rng.permutation(11)[:8] for _ in NEW]).astype(np.int32),
        np.cumsum((0, *NEW)).astype(np.int32),
        lengths,
        max(NEW),
    )


def reference_prefill(q, kv, table, cu, lengths, _longest, **_):
    from tests.kernels.references import attention_bshd, causal

    out = np.empty_like(q)
    for b, n in enumerate(lengths):
        rows = slice(cu[b], cu[b + 1])
        k, v = (kv[table[b], i].reshape(-1, *kv.shape[3:])[None, :n] for i in (0, 1))
        seen = causal(rows.stop - rows.start, n)
        out[rows] = attention_bshd(q[None, rows], k, v, lambda *_, seen=seen: seen)[0]
    return (out,)


@tilelang.jit
def sliding_window(Q, K, V, sinks, window=24, block_M=32, block_N=32):
    """Only tiles that a window touches are read; a logit of each head takes part of the sum."""
    B, H, S, D = T.const("B, H, S, D")
    Q: T.Tensor((B, H, S, D), T.float16)
    K: T.Tensor((B, H, S, D), T.float16)
    V: T.Tensor((B, H, S, D), T.float16)
    sinks: T.Tensor((H,), T.float32)
    O = T.empty((B, H, S, D), T.float16)
    scale = LOG2E / math.sqrt(D)
    with T.Kernel(T.ceildiv(S, block_M), B * H, threads=64) as (bm, bh):
        b, h = bh // H, bh % H
        q = T.alloc_shared((block_M, D), T.float16)
        k = T.alloc_shared((block_N, D), T.float16)
        v = T.alloc_shared((block_N, D), T.float16)
        s = T.alloc_fragment((block_M, block_N), T.float32)
        p = T.alloc_fragment((block_M, block_N), T.float16)
        o = T.alloc_fragment((block_M, D), T.float32)
        m = T.alloc_fragment((block_M,), T.float32)
        before = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        T.copy(Q[b, h, bm * block_M, 0], q)
        T.clear(o)
        T.fill(total, 1.0)
        for i in T.Parallel(block_M):
            m[i] = sinks[h] * LOG2E
        first = T.max(0, bm * block_M - window + 1) // block_N
        stop = T.ceildiv(T.min(S, (bm + 1) * block_M), block_N)
        for n in T.Pipelined(first, stop, num_stages=2):
            T.copy(K[b, h, n * block_N : (n + 1) * block_N, :], k)
            T.copy(V[b, h, n * block_N : (n + 1) * block_N, :], v)
            T.gemm(q, k, s, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(block_M, block_N):
                row, col = bm * block_M + i, n * block_N + j
                if not (row - window < col <= row):
                    s[i, j] = -T.infinity(T.float32)
                else:
                    s[i, j] = s[i, j] * scale
            for i in T.Parallel(block_M):
                before[i] = m[i]
            T.reduce_max(s, m, dim=1, clear=False)
            for i in T.Parallel(block_M):
                before[i] = T.exp2(before[i] - m[i])
                total[i] *= before[i]
            for i, j in T.Parallel(block_M, block_N):
                s[i, j] = T.exp2(s[i, j] - m[i])
                p[i, j] = s[i, j]
            T.reduce_sum(s, total, dim=1, clear=False)
            for i, j in T.Parallel(block_M, D):
                o[i, j] = o[i, j] * before[i]
            T.gemm(p, v, o)
        for i, j in T.Parallel(block_M, D):
            o[i, j] /= total[i]
        T.copy(o, O[b, h, bm * block_M : (bm + 1) * block_M, :])
    return O


def inputs_window(rng, *, B, H, S, D, **_):
    draw = lambda: rng.standard_normal((B, H, S, D)).astype(np.float16)  # noqa: E731
    return draw(), draw(), draw(), rng.standard_normal(H).astype(np.float32)


def reference_window(q, k, v, sinks, *, window=24, **_):
    from tests.kernels.references import attention

    at = np.arange(q.shape[2])
    seen = (at <= at[:, None]) & (at > at[:, None] - window)
    return (attention(q, k, v, lambda *_: seen, sinks),)


def combine_splits(heads=5, dim=48, max_splits=8, dtype="float16"):
    """Partial results with their logarithms of sums; how many a sample has is in a tensor."""
    batch = T.dynamic("batch")
    padded = 64

    @T.prim_func
    def combine(
        partial: T.Tensor((batch, heads, max_splits, dim), "float32"),
        lse: T.Tensor((batch, heads, max_splits), "float32"),
        splits: T.Tensor((batch,), "int32"),
        out: T.Tensor((batch, heads, dim), dtype),
        total: T.Tensor((batch, heads), "float32"),
    ):
        with T.Kernel(heads, batch, threads=128) as (h, b):
            weights = T.alloc_shared((max_splits,), "float32")
            logs = T.alloc_fragment((max_splits,), "float32")
            top = T.alloc_fragment((1,), "float32")
            norm = T.alloc_fragment((1,), "float32")
            acc = T.alloc_fragment((padded,), "float32")
            for s in T.Parallel(max_splits):
                logs[s] = T.if_then_else(s < splits[b], lse[b, h, s], -T.infinity("float32"))
            T.reduce_max(logs, top, dim=0)
            for s in T.Parallel(max_splits):
                logs[s] = T.exp(logs[s] - top[0])
            T.reduce_sum(logs, norm, dim=0)
            for s in T.Parallel(max_splits):
                weights[s] = logs[s] / norm[0]
            T.clear(acc)
            for s in T.serial(splits[b]):
                for d in T.Parallel(padded):
                    if d < dim:
                        acc[d] += weights[s] * partial[b, h, s, d]
            T.copy(acc, out[b, h, 0])
            total[b, h] = T.log(norm[0]) + top[0]

    return combine


def inputs_splits(rng, *, B, heads=5, dim=48, max_splits=8, **_):
    f = np.float32
    return (
        rng.standard_normal((B, heads, max_splits, dim)).astype(f),
        (rng.standard_normal((B, heads, max_splits)) * 3).astype(f),
        rng.integers(1, max_splits + 1, B).astype(np.int32),
        np.zeros((B, heads, dim), np.float16),
        np.zeros((B, heads), f),
    )


def reference_splits(partial, lse, splits, out, total, **_):
    for b, n in enumerate(splits):
        w = np.exp(lse[b, :, :n])
        total[b] = np.log(w.sum(1))
        out[b] = np.einsum("hs,hsd->hd", w, partial[b, :, :n]) / w.sum(1)[:, None]
    return out, total
