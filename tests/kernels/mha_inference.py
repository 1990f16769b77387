"""Decoding attention split over the keys: partial results in one kernel, combined in a second."""

import numpy as np

import tilelang
import tilelang.language as T

NUM_SPLIT = 4


@tilelang.jit(out_idx=[3])
def flashattn(batch, heads, seqlen_q, seqlen_kv, dim, is_causal, block_M, block_N):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape_q = [batch, seqlen_q, heads, dim]
    shape_kv = [batch, seqlen_kv, heads, dim]
    part_shape = [batch, seqlen_q, heads, NUM_SPLIT, dim]
    dtype = T.float16
    accum_dtype = T.float32
    # Each split takes whole blocks; the last one may reach beyond the keys and is masked.
    blocks_per_split = -(-seqlen_kv // (NUM_SPLIT * block_N))
    keys_per_split = blocks_per_split * block_N
    past = seqlen_kv - seqlen_q
    # Scores and output of 128 rows are more than the registers of four warps hold.
    threads = 256 if block_M >= 128 else 128

    @T.macro
    def attend_split(
        Q: T.Tensor(shape_q, dtype),
        K: T.Tensor(shape_kv, dtype),
        V: T.Tensor(shape_kv, dtype),
        glse: T.Tensor([batch, heads, NUM_SPLIT, seqlen_q], accum_dtype),
        Output_partial: T.Tensor(part_shape, accum_dtype),
    ):
        with T.Kernel(T.ceildiv(seqlen_q, block_M), heads * batch, NUM_SPLIT, threads=threads) as (
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

            head = by % heads
            sample = by // heads
            T.copy(Q[sample, bx * block_M : (bx + 1) * block_M, head, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            # A finite floor, so that a row with no visible key yet subtracts no two infinities.
            T.fill(scores_max, -1e30)

            for k in T.Pipelined(blocks_per_split, num_stages=2):
                start = bz * keys_per_split + k * block_N
                T.copy(K[sample, start : start + block_N, head, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    last_key = T.min(seqlen_kv - 1, bx * block_M + i + past)
                    if is_causal:
                        acc_s[i, j] = T.if_then_else(
                            start + j > last_key, -T.infinity(accum_dtype), 0
                        )
                    else:
                        acc_s[i, j] = T.if_then_else(
                            start + j < seqlen_kv, 0, -T.infinity(accum_dtype)
                        )
                T.gemm(
                    Q_shared,
                    K_shared,
                    acc_s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(V[sample, start : start + block_N, head, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] = T.if_then_else(logsum[i] > 0, acc_o[i, j] / logsum[i], 0)
            for i in T.Parallel(block_M):
                logsum[i] = T.if_then_else(
                    logsum[i] > 0,
                    T.log2(logsum[i]) + scores_max[i] * scale,
                    -T.infinity(accum_dtype),
                )
            T.copy(logsum, glse[sample, head, bz, bx * block_M : (bx + 1) * block_M])
            T.copy(
                acc_o,
                Output_partial[sample, bx * block_M : (bx + 1) * block_M, head, bz, :],
            )

    @T.macro
    def combine(
        glse: T.Tensor([batch, heads, NUM_SPLIT, seqlen_q], accum_dtype),
        Output_partial: T.Tensor(part_shape, accum_dtype),
        Output: T.Tensor(shape_q, dtype),
    ):
        with T.Kernel(T.ceildiv(seqlen_q, block_M), heads, batch, threads=128) as (
            bx,
            by,
            bz,
        ):
            po = T.alloc_fragment([block_M, dim], accum_dtype)
            acc_o = T.alloc_fragment([block_M, dim], accum_dtype)
            lse = T.alloc_fragment([block_M], accum_dtype)
            lse_max = T.alloc_fragment([block_M], accum_dtype)
            weight_sum = T.alloc_fragment([block_M], accum_dtype)

            T.clear(acc_o)
            T.clear(weight_sum)
            T.fill(lse_max, -T.infinity(accum_dtype))
            for s in T.serial(NUM_SPLIT):
                T.copy(glse[bz, by, s, bx * block_M : (bx + 1) * block_M], lse)
                for i in T.Parallel(block_M):
                    lse_max[i] = T.max(lse_max[i], lse[i])
            for s in T.Pipelined(NUM_SPLIT, num_stages=2):
                T.copy(glse[bz, by, s, bx * block_M : (bx + 1) * block_M], lse)
                T.copy(Output_partial[bz, bx * block_M : (bx + 1) * block_M, by, s, :], po)
                for i in T.Parallel(block_M):
                    lse[i] = T.exp2(lse[i] - lse_max[i])
                    weight_sum[i] += lse[i]
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] += po[i, j] * lse[i]
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= weight_sum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    @T.prim_func
    def flashattn_mha_inference(
        Q: T.Tensor(shape_q, dtype),
        K: T.Tensor(shape_kv, dtype),
        V: T.Tensor(shape_kv, dtype),
        Output: T.Tensor(shape_q, dtype),
    ):
        glse = T.alloc_global([batch, heads, NUM_SPLIT, seqlen_q], accum_dtype)
        Output_partial = T.alloc_global(part_shape, accum_dtype)
        attend_split(Q, K, V, glse, Output_partial)
        combine(glse, Output_partial, Output)

    return flashattn_mha_inference


def inputs(rng, batch, heads, seqlen_q, seqlen_kv, dim, **_):
    lengths = (seqlen_q, seqlen_kv, seqlen_kv)
    return tuple(
        rng.standard_normal((batch, length, heads, dim)).astype(np.float16) for length in lengths
    )


def reference(q, k, v, is_causal, **_):
    from tests.kernels.references import attention_bshd, causal

    rows, columns = q.shape[1], k.shape[1]
    allowed = causal(rows, columns) if is_causal else np.ones((rows, columns), bool)
    return (attention_bshd(q, k, v, lambda _sample, _head: allowed),)
