"""Flash attention forward with grouped key/value heads; block sizes can be tuned."""

import numpy as np

import tilelang
import tilelang.language as T


def configurations():
    """The tile shapes worth timing."""
    return [
        {"block_M": 64, "block_N": 64, "num_stages": 1, "threads": 128},
        {"block_M": 32, "block_N": 32, "num_stages": 0, "threads": 128},
    ]


def flashattn_factory(
    batch,
    heads,
    seq_len,
    dim,
    is_causal,
    groups=1,
    block_M=64,
    block_N=64,
    num_stages=0,
    threads=128,
):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    head_kv = heads // groups
    q_shape = [batch, seq_len, heads, dim]
    kv_shape = [batch, seq_len, head_kv, dim]
    dtype = T.float16
    accum_dtype = T.float32

    @T.macro
    def scores_of_block(
        K: T.Tensor(kv_shape, dtype),
        Q_shared: T.SharedBuffer([block_M, dim], dtype),
        K_shared: T.SharedBuffer([block_N, dim], dtype),
        acc_s: T.FragmentBuffer([block_M, block_N], accum_dtype),
        k: T.int32,
        bx: T.int32,
        by: T.int32,
        bz: T.int32,
    ):
        T.copy(K[bz, k * block_N : (k + 1) * block_N, by // groups, :], K_shared)
        for i, j in T.Parallel(block_M, block_N):
            visible = k * block_N + j < seq_len
            if is_causal:
                acc_s[i, j] = T.if_then_else(
                    visible and bx * block_M + i >= k * block_N + j,
                    0,
                    -T.infinity(accum_dtype),
                )
            else:
                acc_s[i, j] = T.if_then_else(visible, 0, -T.infinity(accum_dtype))
        T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

    @T.macro
    def softmax(
        acc_s: T.FragmentBuffer([block_M, block_N], accum_dtype),
        acc_s_cast: T.FragmentBuffer([block_M, block_N], dtype),
        scores_max: T.FragmentBuffer([block_M], accum_dtype),
        scores_max_prev: T.FragmentBuffer([block_M], accum_dtype),
        scores_scale: T.FragmentBuffer([block_M], accum_dtype),
        scores_sum: T.FragmentBuffer([block_M], accum_dtype),
        logsum: T.FragmentBuffer([block_M], accum_dtype),
    ):
        T.copy(scores_max, scores_max_prev)
        T.reduce_max(acc_s, scores_max, dim=1, clear=False)
        for i in T.Parallel(block_M):
            scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
        for i, j in T.Parallel(block_M, block_N):
            acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
        T.reduce_sum(acc_s, scores_sum, dim=1)
        for i in T.Parallel(block_M):
            logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
        T.copy(acc_s, acc_s_cast)

    @T.macro
    def rescale(
        acc_o: T.FragmentBuffer([block_M, dim], accum_dtype),
        scores_scale: T.FragmentBuffer([block_M], accum_dtype),
    ):
        for i, j in T.Parallel(block_M, dim):
            acc_o[i, j] *= scores_scale[i]

    @T.prim_func
    def main(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        Output: T.Tensor(q_shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
            Q_shared = T.alloc_shared([block_M, dim], dtype)
            K_shared = T.alloc_shared([block_N, dim], dtype)
            V_shared = T.alloc_shared([block_N, dim], dtype)
            acc_s = T.alloc_fragment([block_M, block_N], accum_dtype)
            acc_s_cast = T.alloc_fragment([block_M, block_N], dtype)
            acc_o = T.alloc_fragment([block_M, dim], accum_dtype)
            scores_max = T.alloc_fragment([block_M], accum_dtype)
            scores_max_prev = T.alloc_fragment([block_M], accum_dtype)
            scores_scale = T.alloc_fragment([block_M], accum_dtype)
            scores_sum = T.alloc_fragment([block_M], accum_dtype)
            logsum = T.alloc_fragment([block_M], accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))

            loop_range = T.ceildiv(seq_len, block_N)
            if is_causal:
                loop_range = T.min(loop_range, T.ceildiv((bx + 1) * block_M, block_N))
            for k in T.Pipelined(loop_range, num_stages=num_stages):
                scores_of_block(K, Q_shared, K_shared, acc_s, k, bx, by, bz)
                softmax(
                    acc_s,
                    acc_s_cast,
                    scores_max,
                    scores_max_prev,
                    scores_scale,
                    scores_sum,
                    logsum,
                )
                rescale(acc_o, scores_scale)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by // groups, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


flashattn = tilelang.jit(out_idx=[3])(flashattn_factory)
flashattn_tuned = tilelang.autotune(configs=configurations(), warmup=1, rep=2)(
    tilelang.jit(out_idx=[3])(flashattn_factory)
)


def inputs(rng, batch, heads, seq_len, dim, groups, **_):
    shapes = [(batch, seq_len, h, dim) for h in (heads, heads // groups, heads // groups)]
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in shapes)


def reference(q, k, v, is_causal, **_):
    from tests.kernels.references import attention_bshd, causal

    length = q.shape[1]
    allowed = causal(length, length) if is_causal else np.ones((length, length), bool)
    return (attention_bshd(q, k, v, lambda _sample, _head: allowed),)
