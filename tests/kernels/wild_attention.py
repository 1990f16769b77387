"""Attention as servers run it: ragged, paged, windowed, quantised, split, sparse and backward."""

import math

import numpy as np

import tilelang
import tilelang.language as T

PASS_CONFIGS = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


@tilelang.jit(out_idx=[6], pass_configs=PASS_CONFIGS)
def varlen(
    batch, groups, UQ, UKV, heads, dim, is_causal=True, block_M=32, block_N=32, num_stages=1
):
    """Samples of different lengths lie one after the other; `cu_seqlens` says where each begins."""
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e)
    head_kv = heads // groups
    q_shape, kv_shape = [UQ, heads, dim], [UKV, head_kv, dim]
    dtype, accum_dtype = T.float16, T.float32

    @T.prim_func
    def main(
        Q_unpad: T.Tensor(q_shape, dtype),
        K_unpad: T.Tensor(kv_shape, dtype),
        V_unpad: T.Tensor(kv_shape, dtype),
        cu_seqlens_q: T.Tensor([batch + 1], T.int32),
        cu_seqlens_k: T.Tensor([batch + 1], T.int32),
        max_seqlen_q: T.int32,
        Output_unpad: T.Tensor(q_shape, dtype),
    ):
        with T.Kernel(T.ceildiv(max_seqlen_q, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, dim], dtype)
            K_shared = T.alloc_shared([block_N, dim], dtype)
            V_shared = T.alloc_shared([block_N, dim], dtype)
            O_shared = T.alloc_shared([block_M, dim], dtype)
            acc_s = T.alloc_fragment([block_M, block_N], accum_dtype)
            acc_s_cast = T.alloc_fragment([block_M, block_N], dtype)
            acc_o = T.alloc_fragment([block_M, dim], accum_dtype)
            scores_max = T.alloc_fragment([block_M], accum_dtype)
            scores_max_prev = T.alloc_fragment([block_M], accum_dtype)
            scores_scale = T.alloc_fragment([block_M], accum_dtype)
            scores_sum = T.alloc_fragment([block_M], accum_dtype)
            logsum = T.alloc_fragment([block_M], accum_dtype)

            batch_idx = bz
            head_idx = by
            kv_head_idx = head_idx // groups
            q_start_idx = cu_seqlens_q[batch_idx]
            kv_start_idx = cu_seqlens_k[batch_idx]
            q_current_seqlen = cu_seqlens_q[batch_idx + 1] - q_start_idx
            kv_current_seqlen = cu_seqlens_k[batch_idx + 1] - kv_start_idx

            T.copy(
                Q_unpad[
                    q_start_idx + bx * block_M : q_start_idx + bx * block_M + block_M, head_idx, :
                ],
                Q_shared,
            )
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            offset = kv_current_seqlen - q_current_seqlen
            loop_range = (
                T.min(
                    T.ceildiv(offset + (bx + 1) * block_M, block_N),
                    T.ceildiv(kv_current_seqlen, block_N),
                )
                if is_causal
                else T.ceildiv(kv_current_seqlen, block_N)
            )
            for k in T.Pipelined(loop_range, num_stages=num_stages):
                T.copy(
                    K_unpad[
                        kv_start_idx + k * block_N : kv_start_idx + (k + 1) * block_N,
                        kv_head_idx,
                        :,
                    ],
                    K_shared,
                )
                for i, j in T.Parallel(block_M, block_N):
                    if is_causal:
                        acc_s[i, j] = T.if_then_else(
                            (bx * block_M + i + offset < k * block_N + j)
                            or (
                                bx * block_M + i >= q_current_seqlen
                                or k * block_N + j >= kv_current_seqlen
                            ),
                            -1e9,
                            0,
                        )
                    else:
                        acc_s[i, j] = T.if_then_else(
                            (
                                bx * block_M + i >= q_current_seqlen
                                or k * block_N + j >= kv_current_seqlen
                            ),
                            -1e9,
                            0,
                        )
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores_max, scores_max_prev)
                T.fill(scores_max, -T.infinity(accum_dtype))
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_max[i] = T.max(scores_max[i], scores_max_prev[i])
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(
                    V_unpad[
                        kv_start_idx + k * block_N : kv_start_idx + (k + 1) * block_N,
                        kv_head_idx,
                        :,
                    ],
                    V_shared,
                )
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] = 0 if i < 0 else acc_o[i, j] / logsum[i]
            T.copy(acc_o, O_shared)
            for i, d in T.Parallel(block_M, dim):
                if bx * block_M + i < q_current_seqlen:
                    Output_unpad[q_start_idx + bx * block_M + i, head_idx, d] = O_shared[i, d]

    return main


LENGTHS_Q, LENGTHS_K = (13, 40, 1, 20), (45, 40, 9, 33)


def inputs_varlen(rng, *, UQ, UKV, heads, groups, dim, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    starts = [np.cumsum((0, *n)).astype(np.int32) for n in (LENGTHS_Q, LENGTHS_K)]
    return (
        draw(UQ, heads, dim),
        draw(UKV, heads // groups, dim),
        draw(UKV, heads // groups, dim),
        *starts,
        max(LENGTHS_Q),
    )


def reference_varlen(q, k, v, at_q, at_k, _longest, *, is_causal=True, **_):
    from tests.kernels.references import attention_bshd, causal

    out = np.empty_like(q)
    for s in range(len(at_q) - 1):
        rows, cols = slice(at_q[s], at_q[s + 1]), slice(at_k[s], at_k[s + 1])
        n, m = rows.stop - rows.start, cols.stop - cols.start
        allowed = causal(n, m) if is_causal else np.ones((n, m), bool)
        out[rows] = attention_bshd(
            q[None, rows], k[None, cols], v[None, cols], lambda *_, seen=allowed: seen
        )[0]
    return (out,)


def paged_decode(batch, heads, kv_heads, pages, page_size, dim, *, dtype="float16"):
    """One query per sample; keys lie in pages that a table of the sample names."""
    block_H, block_N = 16, page_size
    group = heads // kv_heads
    valid_heads = min(block_H, group)
    max_blocks = T.dynamic("max_blocks")
    scale = 1 / math.sqrt(dim) * math.log2(math.e)

    @T.macro
    def softmax_step(acc_s, acc_o, row_max, row_sum, tile_max, tile_sum, factor):
        T.reduce_max(acc_s, tile_max, dim=1, clear=True)
        for i in T.Parallel(block_H):
            tile_max[i] = T.max(tile_max[i], row_max[i])
            factor[i] = T.exp2((row_max[i] - tile_max[i]) * scale)
            row_max[i] = tile_max[i]
        for i, j in T.Parallel(block_H, block_N):
            acc_s[i, j] = T.exp2((acc_s[i, j] - row_max[i]) * scale)
        T.reduce_sum(acc_s, tile_sum, dim=1)
        for i in T.Parallel(block_H):
            row_sum[i] = row_sum[i] * factor[i] + tile_sum[i]
        for i, j in T.Parallel(block_H, dim):
            acc_o[i, j] *= factor[i]

    @T.prim_func
    def main(
        Q: T.Tensor([batch, heads, dim], dtype),
        K_pages: T.Tensor([pages, page_size, kv_heads, dim], dtype),
        V_pages: T.Tensor([pages, page_size, kv_heads, dim], dtype),
        block_table: T.Tensor([batch, max_blocks], "int32"),
        cache_seqlens: T.Tensor([batch], "int32"),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(batch, kv_heads, threads=128) as (bid, hid):
            q = T.alloc_shared([block_H, dim], dtype)
            k = T.alloc_shared([block_N, dim], dtype)
            v = T.alloc_shared([block_N, dim], dtype)
            p = T.alloc_shared([block_H, block_N], dtype)
            acc_s = T.alloc_fragment([block_H, block_N], "float32")
            acc_o = T.alloc_fragment([block_H, dim], "float32")
            rows = [T.alloc_fragment([block_H], "float32") for _ in range(5)]
            row_max, row_sum = rows[0], rows[1]

            for i, d in T.Parallel(block_H, dim):
                q[i, d] = T.if_then_else(i < valid_heads, Q[bid, hid * group + i, d], 0)
            T.clear(acc_o)
            T.clear(row_sum)
            T.fill(row_max, -1e30)
            seqlen = cache_seqlens[bid]
            for n in T.Pipelined(T.ceildiv(seqlen, block_N), num_stages=2):
                page = block_table[bid, n]
                T.copy(K_pages[page, 0:block_N, hid, :], k)
                T.gemm(q, k, acc_s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.if_then_else(n * block_N + j < seqlen, acc_s[i, j], -1e30)
                softmax_step(acc_s, acc_o, *rows)
                T.copy(acc_s, p)
                T.copy(V_pages[page, 0:block_N, hid, :], v)
                T.gemm(p, v, acc_o)
            for i, d in T.Parallel(block_H, dim):
                if i < valid_heads:
                    Output[bid, hid * group + i, d] = acc_o[i, d] / row_sum[i]

    return main


def inputs_paged(rng, *, batch, heads, kv_heads, pages, page_size, dim, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    lengths = rng.integers(1, 3 * page_size, batch).astype(np.int32)
    table = np.stack([rng.permutation(pages)[:3] for _ in range(batch)]).astype(np.int32)
    return (
        draw(batch, heads, dim),
        draw(pages, page_size, kv_heads, dim),
        draw(pages, page_size, kv_heads, dim),
        table,
        lengths,
    )


def reference_paged(q, k, v, table, lengths, **_):
    from tests.kernels.references import attention_bshd

    out = np.empty_like(q)
    for s, n in enumerate(lengths):
        keys, values = (x[table[s]].reshape(-1, *x.shape[2:])[:n] for x in (k, v))
        everything = np.ones((1, n), bool)
        out[s] = attention_bshd(
            q[None, s, None], keys[None], values[None], lambda *_, seen=everything: seen
        )[0, 0]
    return (out,)


@tilelang.jit
def flash_decode(Q, K, V, seqlens, num_split=3, block_H=16, block_N=32):
    """Split keys, partial results with their log-sum, and a second kernel that combines them."""
    batch, heads, kv_heads, seq, dim = T.const("batch heads kv_heads seq dim")
    Q: T.Tensor((batch, heads, dim), T.float16)
    K: T.Tensor((batch, seq, kv_heads, dim), T.float16)
    V: T.Tensor((batch, seq, kv_heads, dim), T.float16)
    seqlens: T.Tensor((batch,), T.int32)
    partial = T.empty((batch, heads, num_split, dim), T.float32)
    lse = T.empty((batch, heads, num_split), T.float32)
    out = T.empty((batch, heads, dim), T.float16)
    groups = heads // kv_heads
    scale = (1.0 / dim) ** 0.5 * 1.44269504

    with T.Kernel(batch, kv_heads, num_split, threads=128) as (b, h, s):
        Q_shared = T.alloc_shared((block_H, dim), T.float16)
        K_shared = T.alloc_shared((block_N, dim), T.float16)
        V_shared = T.alloc_shared((block_N, dim), T.float16)
        acc_s = T.alloc_fragment((block_H, block_N), T.float32)
        probs = T.alloc_fragment((block_H, block_N), T.float16)
        acc_o = T.alloc_fragment((block_H, dim), T.float32)
        m = T.alloc_fragment((block_H,), T.float32)
        m_prev = T.alloc_fragment((block_H,), T.float32)
        total = T.alloc_fragment((block_H,), T.float32)
        part = T.alloc_fragment((block_H,), T.float32)
        T.annotate_safe_value({Q: 0.0})
        T.copy(Q[b, h * groups, 0], Q_shared)
        T.clear(acc_o)
        T.clear(total)
        T.fill(m, -T.infinity(T.float32))
        length = seqlens[b]
        per_split = T.ceildiv(T.ceildiv(length, num_split), block_N) * block_N
        first = s * per_split
        count = T.max(0, T.min(per_split, length - first))
        for k in T.Pipelined(T.ceildiv(count, block_N), num_stages=2):
            T.copy(K[b, first + k * block_N : first + (k + 1) * block_N, h, :], K_shared)
            for i, j in T.Parallel(block_H, block_N):
                acc_s[i, j] = T.if_then_else(k * block_N + j < count, 0, -T.infinity(T.float32))
            T.gemm(Q_shared, K_shared, acc_s, transpose_B=True)
            T.copy(m, m_prev)
            T.reduce_max(acc_s, m, dim=1, clear=False)
            for i, j in T.Parallel(block_H, block_N):
                acc_s[i, j] = T.exp2((acc_s[i, j] - m[i]) * scale)
            T.reduce_sum(acc_s, part, dim=1)
            for i in T.Parallel(block_H):
                m_prev[i] = T.exp2((m_prev[i] - m[i]) * scale)
                total[i] = total[i] * m_prev[i] + part[i]
            for i, j in T.Parallel(block_H, dim):
                acc_o[i, j] *= m_prev[i]
            T.copy(acc_s, probs)
            T.copy(V[b, first + k * block_N : first + (k + 1) * block_N, h, :], V_shared)
            T.gemm(probs, V_shared, acc_o)
        for i in T.Parallel(block_H):
            if i < groups:
                lse[b, h * groups + i, s] = T.if_then_else(
                    total[i] > 0, m[i] * scale + T.log2(total[i]), -T.infinity(T.float32)
                )
        for i, j in T.Parallel(block_H, dim):
            if i < groups:
                partial[b, h * groups + i, s, j] = T.if_then_else(
                    total[i] > 0, acc_o[i, j] / total[i], 0
                )

    with T.Kernel(heads, batch, threads=64) as (h, b):
        merged = T.alloc_fragment((dim,), T.float32)
        top = T.alloc_var(T.float32)
        norm = T.alloc_var(T.float32)
        T.clear(merged)
        top = -T.infinity(T.float32)
        norm = 0
        for s in T.serial(num_split):
            top = T.max(top, lse[b, h, s])
        for s in T.serial(num_split):
            norm += T.exp2(lse[b, h, s] - top)
        for s in T.serial(num_split):
            for j in T.Parallel(dim):
                merged[j] += partial[b, h, s, j] * (T.exp2(lse[b, h, s] - top) / norm)
        T.copy(merged, out[b, h, :])
    return partial, lse, out


def inputs_decode(rng, *, batch, heads, kv_heads, seq, dim, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    lengths = np.array([seq, 5, seq // 2 + 1][:batch], np.int32)
    return (
        draw(batch, heads, dim),
        draw(batch, seq, kv_heads, dim),
        draw(batch, seq, kv_heads, dim),
        lengths,
    )


def reference_decode(q, k, v, lengths, *, dim, num_split=3, block_N=32, **_):
    batch, heads = q.shape[:2]
    groups = heads // k.shape[2]
    parts = np.zeros((batch, heads, num_split, dim))
    lse = np.full((batch, heads, num_split), -np.inf)
    out = np.empty(q.shape)
    for b, h in np.ndindex(batch, heads):
        n = lengths[b]
        scores = k[b, :n, h // groups] @ q[b, h] / np.sqrt(dim)
        step = tilelang.cdiv(tilelang.cdiv(int(n), num_split), block_N) * block_N
        for s in range(num_split):
            part = slice(s * step, min((s + 1) * step, n))
            if part.start < n:
                weights = np.exp(scores[part] - scores[part].max())
                parts[b, h, s] = weights @ v[b, part, h // groups] / weights.sum()
                lse[b, h, s] = (scores[part].max() + np.log(weights.sum())) / np.log(2)
        weights = np.exp(scores - scores.max())
        out[b, h] = weights @ v[b, :n, h // groups] / weights.sum()
    return parts, lse, out


@tilelang.jit(out_idx=[3])
def windowed_softcap(B, H, S, D, window=24, softcap=8.0, slope=True, block=32):
    """Sliding window, tanh soft cap and ALiBi slopes, after one another on the same tile."""
    shape = (B, S, H, D)
    dtype = "bfloat16"
    inv = 1.0 / (D**0.5)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(S, block), H, B, threads=128) as (bx, by, bz):
            Qs, Ks, Vs = (T.alloc_shared((block, D), dtype) for _ in range(3))
            s = T.alloc_fragment((block, block), "float32")
            p = T.alloc_fragment((block, block), dtype)
            o = T.alloc_fragment((block, D), "float32")
            m = T.alloc_fragment((block,), "float32")
            m_new = T.alloc_fragment((block,), "float32")
            l = T.alloc_fragment((block,), "float32")
            l_part = T.alloc_fragment((block,), "float32")
            T.copy(Q[bz, bx * block : (bx + 1) * block, by, :], Qs)
            T.fill(o, 0)
            T.fill(l, 0)
            T.fill(m, -1e30)
            first = T.max(0, (bx * block - window + 1) // block)
            for k in T.Pipelined(first, bx + 1, num_stages=2):
                T.copy(K[bz, k * block : (k + 1) * block, by, :], Ks)
                T.copy(V[bz, k * block : (k + 1) * block, by, :], Vs)
                T.clear(s)
                T.gemm(Qs, Ks, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block, block):
                    qi, kj = bx * block + i, k * block + j
                    x = s[i, j] * inv
                    capped = softcap * T.tanh(x / softcap)
                    if slope:
                        capped = capped - T.exp2(-8.0 * (by + 1) / H) * T.cast(qi - kj, "float32")
                    s[i, j] = T.if_then_else(
                        (kj <= qi) & (qi - kj < window) & (kj < S), capped, -1e30
                    )
                T.reduce_max(s, m_new, dim=-1)
                for i in T.Parallel(block):
                    m_new[i] = T.max(m_new[i], m[i])
                for i, j in T.Parallel(block, block):
                    s[i, j] = T.exp(s[i, j] - m_new[i])
                T.reduce_sum(s, l_part, dim=-1)
                for i in T.Parallel(block):
                    alpha = T.exp(m[i] - m_new[i])
                    l[i] = l[i] * alpha + l_part[i]
                for i, j in T.Parallel(block, D):
                    o[i, j] = o[i, j] * T.exp(m[i] - m_new[i])
                T.copy(m_new, m)
                T.copy(s, p)
                T.gemm(p, Vs, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block, D):
                o[i, j] /= l[i]
            T.copy(o, O[bz, bx * block : (bx + 1) * block, by, :])

    return main


def inputs_bf16(rng, *, B, H, S, D, **_):
    import torch

    return tuple(
        torch.from_numpy(rng.standard_normal((B, S, H, D)).astype(np.float32)).bfloat16()
        for _ in range(3)
    )


def reference_windowed(q, k, v, *, S, D, H, window=24, softcap=8.0, slope=True, **_):
    at = np.arange(S)
    gap = at[:, None] - at
    out = np.empty_like(q)
    for b, h in np.ndindex(q.shape[0], H):
        x = softcap * np.tanh(q[b, :, h] @ k[b, :, h].T / np.sqrt(D) / softcap)
        x = x - 2.0 ** (-8.0 * (h + 1) / H) * gap * slope
        x = np.where((gap >= 0) & (gap < window), x, -np.inf)
        w = np.exp(x - x.max(1, keepdims=True))
        out[b, :, h] = w / w.sum(1, keepdims=True) @ v[b, :, h]
    return (out,)


@tilelang.jit
def attention_backward(Q, K, V, dO, lse, delta, dQ, dK, dV, block_M=32, block_N=32, causal=True):
    """dK and dV of a block of keys stay in registers, dQ is added up with atomics."""
    B, H, S, D = T.const("B, H, S, D")
    Q: T.Tensor((B, H, S, D), "float16")
    K: T.Tensor((B, H, S, D), "float16")
    V: T.Tensor((B, H, S, D), "float16")
    dO: T.Tensor((B, H, S, D), "float16")
    lse: T.Tensor((B, H, S), "float32")
    delta: T.Tensor((B, H, S), "float32")
    dQ: T.Tensor((B, H, S, D), "float32")
    dK: T.Tensor((B, H, S, D), "float32")
    dV: T.Tensor((B, H, S, D), "float32")
    sm_scale = (1.0 / D) ** 0.5
    scale = sm_scale * 1.44269504

    with T.Kernel(H, T.ceildiv(S, block_M), B, threads=128) as (bx, by, bz):
        K_shared = T.alloc_shared([block_M, D], "float16")
        V_shared = T.alloc_shared([block_M, D], "float16")
        q = T.alloc_shared([block_N, D], "float16")
        do = T.alloc_shared([block_N, D], "float16")
        lse_shared = T.alloc_shared([block_N], "float32")
        delta_shared = T.alloc_shared([block_N], "float32")
        dsT_shared = T.alloc_shared([block_M, block_N], "float16")
        qkT = T.alloc_fragment([block_M, block_N], "float32")
        dsT = T.alloc_fragment([block_M, block_N], "float32")
        qkT_cast = T.alloc_fragment([block_M, block_N], "float16")
        dsT_cast = T.alloc_fragment([block_M, block_N], "float16")
        dv = T.alloc_fragment([block_M, D], "float32")
        dk = T.alloc_fragment([block_M, D], "float32")
        dq = T.alloc_fragment([block_N, D], "float32")

        T.copy(K[bz, bx, by * block_M : (by + 1) * block_M, :], K_shared)
        T.copy(V[bz, bx, by * block_M : (by + 1) * block_M, :], V_shared)
        T.clear(dv)
        T.clear(dk)
        loop_st = T.floordiv(by * block_M, block_N) if causal else 0
        loop_ed = T.ceildiv(S, block_N)
        for k in T.Pipelined(loop_st, loop_ed, num_stages=1):
            T.copy(Q[bz, bx, k * block_N : (k + 1) * block_N, :], q)
            T.clear(qkT)
            T.gemm(K_shared, q, qkT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(lse[bz, bx, k * block_N : (k + 1) * block_N], lse_shared)
            for i, j in T.Parallel(block_M, block_N):
                qkT[i, j] = T.exp2(qkT[i, j] * scale - lse_shared[j])
            for i, j in T.Parallel(block_M, block_N):
                inside = k * block_N + j < S and by * block_M + i < S
                if causal:
                    inside = inside and by * block_M + i <= k * block_N + j
                qkT[i, j] = T.if_then_else(inside, qkT[i, j], 0)
            T.copy(dO[bz, bx, k * block_N : (k + 1) * block_N, :], do)
            T.clear(dsT)
            T.gemm(V_shared, do, dsT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(qkT, qkT_cast)
            T.gemm(qkT_cast, do, dv, policy=T.GemmWarpPolicy.FullRow)
            T.copy(delta[bz, bx, k * block_N : (k + 1) * block_N], delta_shared)
            for i, j in T.Parallel(block_M, block_N):
                dsT_cast[i, j] = qkT[i, j] * (dsT[i, j] - delta_shared[j]) * sm_scale
            T.gemm(dsT_cast, q, dk, policy=T.GemmWarpPolicy.FullRow)
            T.copy(dsT_cast, dsT_shared)
            T.clear(dq)
            T.gemm(dsT_shared, K_shared, dq, transpose_A=True)
            for i, j in T.Parallel(block_N, D):
                if k * block_N + i < S:
                    T.atomic_add(dQ[bz, bx, k * block_N + i, j], dq[i, j])
        T.copy(dv, dV[bz, bx, by * block_M : (by + 1) * block_M, :])
        T.copy(dk, dK[bz, bx, by * block_M : (by + 1) * block_M, :])


def _softmax_of(q, k, D):
    S = q.shape[2]
    s = q @ np.swapaxes(k, 2, 3) / np.sqrt(D)
    return np.where(np.tril(np.ones((S, S), bool)), s, -np.inf)


def inputs_backward(rng, *, B, H, S, D, **_):
    q, k, v, do = (rng.standard_normal((B, H, S, D)).astype(np.float16) for _ in range(4))
    s = _softmax_of(q.astype(np.float64), k.astype(np.float64), D)
    lse = np.log(np.exp(s).sum(3))
    out = np.exp(s - lse[..., None]) @ v.astype(np.float64)
    delta = (out * do).sum(3)
    zeros = (np.zeros((B, H, S, D), np.float32) for _ in range(3))
    return (q, k, v, do, (lse / np.log(2)).astype(np.float32), delta.astype(np.float32), *zeros)


def reference_backward(q, k, v, do, lse, delta, *_gradients, D, **_):
    p = np.exp(_softmax_of(q, k, D) - lse[..., None] * np.log(2))
    ds = p * (do @ np.swapaxes(v, 2, 3) - delta[..., None]) / np.sqrt(D)
    turned = np.swapaxes(ds, 2, 3)
    return ds @ k, turned @ q, np.swapaxes(p, 2, 3) @ do
