"""Causal flash attention over (batch, head, sequence, dim) with a learned sink logit per head.

The sink is one more key with no value: it takes part of the softmax and adds nothing. With a
window, a query sees only its last ``window_size`` keys.
"""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def flashattn(
    batch,
    heads,
    seq_q,
    seq_kv,
    dim,
    window_size=None,
    sm_scale=None,
    block_M=64,
    block_N=64,
    num_stages=1,
    threads=128,
    dtype=T.float16,
):
    if sm_scale is None:
        sm_scale = (1.0 / dim) ** 0.5
    log2_e = 1.44269504
    scale = sm_scale * log2_e
    q_shape = [batch, heads, seq_q, dim]
    kv_shape = [batch, heads, seq_kv, dim]
    accum_dtype = T.float32
    past_len = seq_kv - seq_q
    assert past_len >= 0, "there must be a key for every query"

    @T.prim_func
    def main(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        Output: T.Tensor(q_shape, dtype),
        Sinks: T.Tensor([heads], dtype),
    ):
        with T.Kernel(T.ceildiv(seq_q, block_M), heads, batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
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
            sinks = T.alloc_fragment([block_M], dtype)

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            for i in T.Parallel(block_M):
                sinks[i] = Sinks[by]

            end = T.min(
                T.ceildiv(seq_kv, block_N),
                T.ceildiv((bx + 1) * block_M + past_len, block_N),
            )
            start = T.alloc_var(T.int32, 0)
            if window_size is not None:
                start = T.max(0, (bx * block_M + past_len - window_size + 1) // block_N)

            for k in T.Pipelined(start, end, num_stages=num_stages):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    query = bx * block_M + i + past_len
                    key = k * block_N + j
                    if window_size is not None:
                        acc_s[i, j] = T.if_then_else(
                            query >= key and query < key + window_size,
                            0,
                            -T.infinity(accum_dtype),
                        )
                    else:
                        acc_s[i, j] = T.if_then_else(query >= key, 0, -T.infinity(accum_dtype))
                T.gemm(
                    Q_shared,
                    K_shared,
                    acc_s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )

                T.copy(scores_max, scores_max_prev)
                T.fill(scores_max, -T.infinity(accum_dtype))
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_max[i] = T.max(scores_max[i], scores_max_prev[i])
                    # Outside the window the whole block is -inf, and -inf - -inf is not a number.
                    if window_size is not None:
                        scores_max[i] = T.if_then_else(
                            scores_max[i] == -T.infinity(accum_dtype), 0, scores_max[i]
                        )
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
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i in T.Parallel(block_M):
                logsum[i] += T.exp2(T.cast(sinks[i], accum_dtype) * log2_e - scores_max[i] * scale)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def _arrays(rng, batch, heads, seq_q, seq_kv, dim):
    shapes = [(batch, heads, length, dim) for length in (seq_q, seq_kv, seq_kv)] + [(heads,)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def inputs(rng, batch, heads, seq_q, seq_kv, dim, **_):
    return tuple(x.astype(np.float16) for x in _arrays(rng, batch, heads, seq_q, seq_kv, dim))


def inputs_bfloat16(rng, batch, heads, seq_q, seq_kv, dim, **_):
    import torch

    arrays = _arrays(rng, batch, heads, seq_q, seq_kv, dim)
    return tuple(torch.from_numpy(x).bfloat16() for x in arrays)


def reference(q, k, v, sinks, window_size=None, **_):
    from tests.kernels.references import attention

    rows, columns = q.shape[2], k.shape[2]
    distance = np.arange(rows)[:, None] + columns - rows - np.arange(columns)
    allowed = (distance >= 0) & (distance < (window_size or columns))
    return (attention(q, k, v, lambda _sample, _head: allowed, sinks),)
