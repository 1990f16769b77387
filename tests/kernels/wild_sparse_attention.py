"""Attention to what was selected: blocks per query, indexer scores, gathered latent rows."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def native_sparse(
    batch, heads, seq_len, dim, scale=None, block_size=16, groups=2, selected_blocks=3
):
    """Each query attends to the blocks of keys that were selected for it; -1 selects none."""
    if scale is None:
        scale = (1.0 / dim) ** 0.5 * 1.44269504
    else:
        scale = scale * 1.44269504
    head_kv = heads // groups
    q_shape = [batch, seq_len, heads, dim]
    kv_shape = [batch, seq_len, head_kv, dim]
    block_indices_shape = [batch, seq_len, head_kv, selected_blocks]
    dtype, accum_dtype, block_indices_dtype = T.float16, T.float32, T.int32
    G = groups
    BS = block_size
    BK = BV = min(128, tilelang.math.next_power_of_2(dim))
    NK = tilelang.cdiv(dim, BK)
    assert NK == 1, "the key dimension can not be larger than 128"
    rows = max(G, 16)

    @T.prim_func
    def kernel(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        BlockIndices: T.Tensor(block_indices_shape, block_indices_dtype),
        Output: T.Tensor(q_shape, dtype),
    ):
        with T.Kernel(seq_len, batch * head_kv, threads=32) as (bx, bz):
            Q_shared = T.alloc_shared([rows, BK], dtype)
            K_shared = T.alloc_shared([BS, BK], dtype)
            V_shared = T.alloc_shared([BS, BV], dtype)
            O_shared = T.alloc_shared([rows, BV], dtype)
            acc_s = T.alloc_fragment([rows, BS], accum_dtype)
            acc_s_cast = T.alloc_shared([rows, BS], dtype)
            acc_o = T.alloc_fragment([rows, BV], accum_dtype)
            scores_max = T.alloc_fragment([rows], accum_dtype)
            scores_max_prev = T.alloc_fragment([rows], accum_dtype)
            scores_scale = T.alloc_fragment([rows], accum_dtype)
            scores_sum = T.alloc_fragment([rows], accum_dtype)
            logsum = T.alloc_fragment([rows], accum_dtype)
            i_t = bx
            i_b, i_h = bz // head_kv, bz % head_kv
            NS = selected_blocks
            T.clear(Q_shared)
            T.copy(Q[i_b, i_t, i_h * G : (i_h + 1) * G, :], Q_shared[0:G, 0:dim])
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            for i in T.Pipelined(NS, num_stages=0):
                i_s = BlockIndices[i_b, i_t, i_h, i] * BS
                if i_s <= i_t and i_s >= 0:
                    T.copy(K[i_b, i_s : i_s + BS, i_h, :], K_shared)
                    for g, j in T.Parallel(rows, BS):
                        acc_s[g, j] = T.if_then_else(i_t >= (i_s + j), 0, -T.infinity(acc_s.dtype))
                    T.gemm(
                        Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                    )
                    T.copy(scores_max, scores_max_prev)
                    T.fill(scores_max, -T.infinity(accum_dtype))
                    T.reduce_max(acc_s, scores_max, dim=1, clear=True)
                    for g in T.Parallel(rows):
                        scores_max[g] = T.max(scores_max[g], scores_max_prev[g])
                        scores_scale[g] = T.exp2(scores_max_prev[g] * scale - scores_max[g] * scale)
                    for g, j in T.Parallel(rows, BS):
                        acc_s[g, j] = T.exp2(acc_s[g, j] * scale - scores_max[g] * scale)
                    T.reduce_sum(acc_s, scores_sum, dim=1)
                    for g in T.Parallel(rows):
                        logsum[g] = logsum[g] * scores_scale[g] + scores_sum[g]
                    T.copy(acc_s, acc_s_cast)
                    for g, j in T.Parallel(rows, BV):
                        acc_o[g, j] *= scores_scale[g]
                    T.copy(V[i_b, i_s : i_s + BS, i_h, :], V_shared)
                    T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
            for g, j in T.Parallel(rows, BV):
                acc_o[g, j] /= logsum[g]
            T.copy(acc_o, O_shared)
            T.copy(O_shared[0:G, 0:dim], Output[i_b, i_t, i_h * G : (i_h + 1) * G, :])

    return kernel


def inputs_sparse(
    rng, *, batch, heads, seq_len, dim, block_size=16, groups=2, selected_blocks=3, **_
):
    draw = lambda h: rng.standard_normal((batch, seq_len, h, dim)).astype(np.float16)  # noqa: E731
    kv = heads // groups
    picks = np.full((batch, seq_len, kv, selected_blocks), -1, np.int32)
    for b, t, h in np.ndindex(batch, seq_len, kv):
        own = t // block_size
        some = rng.permutation(own + 1)[: selected_blocks - 1]
        picks[b, t, h, : len(some)] = some
        if own not in some:
            picks[b, t, h, -1] = own
    return draw(heads), draw(kv), draw(kv), picks


def reference_sparse(q, k, v, picks, *, seq_len, dim, block_size=16, groups=2, **_):
    out = np.empty_like(q)
    at = np.arange(seq_len)
    for b, t, h in np.ndindex(*q.shape[:3]):
        seen = np.isin(at // block_size, picks[b, t, h // groups]) & (at <= t)
        x = k[b, seen, h // groups] @ q[b, t, h] / np.sqrt(dim)
        w = np.exp(x - x.max())
        out[b, t, h] = w / w.sum() @ v[b, seen, h // groups]
    return (out,)


@tilelang.jit
def indexer_logits(q, k, weights, starts, ends, block_N=32, block_Q=4):
    """Weighted sum over heads of relu(q k), for the keys each query may see, cleared elsewhere."""
    SQ, SK, H, D = T.const("SQ SK H D")
    q: T.Tensor([SQ * H, D], T.float16)
    k: T.Tensor([SK, D], T.float16)
    weights: T.Tensor([SQ, H], T.float32)
    starts: T.Tensor([SQ], T.int32)
    ends: T.Tensor([SQ], T.int32)
    logits = T.empty([SQ, SK], T.float32)

    with T.Kernel(T.ceildiv(SQ, block_Q), threads=128) as bx:
        q_shared = T.alloc_shared([block_Q * H, D], T.float16)
        k_shared = T.alloc_shared([block_N, D], T.float16)
        s = T.alloc_fragment([block_N, block_Q * H], T.float32)
        s_reshaped = T.reshape(s, (block_N, block_Q, H))
        out = T.alloc_fragment([block_N, block_Q], T.float32)
        w = T.alloc_fragment([block_Q, H], T.float32)
        seq_len_i = bx * block_Q
        k_min = T.alloc_var(T.int32)
        k_max = T.alloc_var(T.int32)
        k_min = 2147483647
        k_max = -2147483648
        for bq in T.serial(block_Q):
            if seq_len_i + bq < SQ:
                k_min = T.min(k_min, T.min(starts[seq_len_i + bq], SK))
        for bq in T.serial(block_Q):
            if seq_len_i + bq < SQ:
                k_max = T.max(k_max, T.min(ends[seq_len_i + bq], SK))
        T.copy(q[seq_len_i * H, 0], q_shared)
        T.copy(weights[seq_len_i, 0], w)
        for i, j in T.Parallel(block_Q, SK):
            if seq_len_i + i < SQ:
                logits[seq_len_i + i, j] = -T.infinity(T.float32)
        for n in T.Pipelined(T.ceildiv(k_max - k_min, block_N), num_stages=2):
            T.copy(k[k_min + n * block_N, 0], k_shared)
            T.gemm(
                k_shared,
                q_shared,
                s,
                transpose_B=True,
                clear_accum=True,
                policy=T.GemmWarpPolicy.FullCol,
            )
            for n_i, bq, h in T.Parallel(block_N, block_Q, H):
                s_reshaped[n_i, bq, h] = T.max(s_reshaped[n_i, bq, h], 0) * w[bq, h]
            T.reduce_sum(s_reshaped, out, dim=-1, clear=True)
            for bq, n_i in T.Parallel(block_Q, block_N):
                at = k_min + n * block_N + n_i
                if seq_len_i + bq < SQ:
                    if at >= starts[seq_len_i + bq] and at < ends[seq_len_i + bq]:
                        logits[seq_len_i + bq, at] = out[n_i, bq]
    return logits


def inputs_indexer(rng, *, SQ, SK, H, D, **_):
    q = rng.standard_normal((SQ * H, D)).astype(np.float16)
    k = rng.standard_normal((SK, D)).astype(np.float16)
    starts = rng.integers(0, SK // 2, SQ).astype(np.int32)
    ends = (starts + rng.integers(1, SK // 2, SQ)).astype(np.int32)
    return q, k, rng.uniform(0, 1, (SQ, H)).astype(np.float32), starts, ends


def reference_indexer(q, k, w, starts, ends, *, SQ, SK, H, D, **_):
    x = (np.maximum(q.reshape(SQ, H, D) @ k.T, 0) * w[..., None]).sum(1)
    at = np.arange(SK)
    return (np.where((at >= starts[:, None]) & (at < ends[:, None]), x, -np.inf),)


@tilelang.jit(out_idx=[-2, -1])
def sparse_mla(seq, kv_len, heads, dim, tail, topk, block=32):
    """Each query has its list of keys: rows are gathered into a tile, index by index."""
    dtype = "bfloat16"
    sm = (1.0 / (dim + tail)) ** 0.5 * 1.44269504
    padded = max(tilelang.math.next_power_of_2(heads), 16)
    assert topk % block == 0, f"topk={topk} is no multiple of {block=}"

    @T.prim_func
    def main(
        Q: T.Tensor([seq, heads, dim + tail], dtype),
        KV: T.Tensor([kv_len, dim + tail], dtype),
        Indices: T.Tensor([seq, topk], "int32"),
        Output: T.Tensor([seq, heads, dim], dtype),
        Lse: T.Tensor([seq, heads], "float32"),
    ):
        with T.Kernel(seq, threads=128) as s_i:
            Q_shared = T.alloc_shared([padded, dim], dtype)
            Q_tail = T.alloc_shared([padded, tail], dtype)
            KV_shared = T.alloc_shared([block, dim], dtype)
            K_tail = T.alloc_shared([block, tail], dtype)
            S_shared = T.alloc_shared([padded, block], dtype)
            mask = T.alloc_fragment([block], "bool")
            acc_o = T.alloc_fragment([padded, dim], "float32")
            acc_s = T.alloc_fragment([padded, block], "float32")
            sumexp = T.alloc_fragment([padded], "float32")
            sumexp_i = T.alloc_fragment([padded], "float32")
            alpha = T.alloc_fragment([padded], "float32")
            m_i = T.alloc_fragment([padded], "float32")
            m_i_prev = T.alloc_fragment([padded], "float32")
            T.fill(acc_o, 0)
            T.fill(sumexp, 0)
            T.fill(m_i, -(2**30))
            T.copy(Q[s_i, 0, 0], Q_shared)
            T.copy(Q[s_i, 0, dim], Q_tail)
            for i_i in T.Pipelined(topk // block, num_stages=2):
                for bi_i in T.Parallel(block):
                    mask[bi_i] = Indices[s_i, i_i * block + bi_i] >= 0
                for bi_i, d_i in T.Parallel(block, dim):
                    KV_shared[bi_i, d_i] = KV[Indices[s_i, i_i * block + bi_i], d_i]
                for bi_i, d_i in T.Parallel(block, tail):
                    K_tail[bi_i, d_i] = KV[Indices[s_i, i_i * block + bi_i], dim + d_i]
                for h_i, bi_i in T.Parallel(padded, block):
                    acc_s[h_i, bi_i] = T.if_then_else(mask[bi_i], 0, -T.infinity(acc_s.dtype))
                T.gemm(
                    Q_shared, KV_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol
                )
                T.gemm(Q_tail, K_tail, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                T.copy(m_i, m_i_prev)
                T.reduce_max(acc_s, m_i, dim=1, clear=False)
                for h_i in T.Parallel(padded):
                    alpha[h_i] = T.exp2((m_i_prev[h_i] - m_i[h_i]) * sm)
                for h_i, bi_i in T.Parallel(padded, block):
                    acc_s[h_i, bi_i] = T.exp2(acc_s[h_i, bi_i] * sm - m_i[h_i] * sm)
                T.reduce_sum(acc_s, sumexp_i, dim=1)
                for h_i in T.Parallel(padded):
                    sumexp[h_i] = sumexp[h_i] * alpha[h_i] + sumexp_i[h_i]
                for h_i, d_i in T.Parallel(padded, dim):
                    acc_o[h_i, d_i] = acc_o[h_i, d_i] * alpha[h_i]
                T.copy(acc_s, S_shared)
                T.gemm(S_shared, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)
            for h_i, d_i in T.Parallel(padded, dim):
                acc_o[h_i, d_i] /= sumexp[h_i]
            for h_i in T.Parallel(padded):
                sumexp[h_i] = T.log2(sumexp[h_i]) + m_i[h_i] * sm
            T.copy(acc_o, Output[s_i, 0, 0])
            T.copy(sumexp, Lse[s_i, 0])

    return main


def inputs_sparse_mla(rng, *, seq, kv_len, heads, dim, tail, topk, **_):
    import torch

    q = torch.from_numpy(
        rng.standard_normal((seq, heads, dim + tail)).astype(np.float32)
    ).bfloat16()
    kv = torch.from_numpy(rng.standard_normal((kv_len, dim + tail)).astype(np.float32)).bfloat16()
    picks = np.stack([rng.permutation(kv_len)[:topk] for _ in range(seq)]).astype(np.int32)
    picks[rng.uniform(size=picks.shape) < 0.3] = -1
    picks[:, 0] = 1
    return q, kv, torch.from_numpy(picks)


def reference_sparse_mla(q, kv, picks, *, dim, tail, **_):
    out, lse = np.empty((*q.shape[:2], dim)), np.empty(q.shape[:2])
    for s, h in np.ndindex(*q.shape[:2]):
        rows = kv[picks[s][picks[s] >= 0]]
        x = rows @ q[s, h] / np.sqrt(dim + tail)
        w = np.exp(x - x.max())
        out[s, h] = w / w.sum() @ rows[:, :dim]
        lse[s, h] = (np.log(w.sum()) + x.max()) / np.log(2)
    return out, lse
