"""Flash attention that skips every key block whose mask is off."""

import numpy as np

import tilelang
import tilelang.language as T

BLOCK = 64


@tilelang.jit(out_idx=[4])
def blocksparse_flashattn(batch, heads, seq_len, dim, downsample_len, is_causal):
    block_M = BLOCK
    block_N = BLOCK
    num_stages = 1
    threads = 128
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = [batch, heads, seq_len, dim]
    block_mask_shape = [batch, heads, downsample_len, downsample_len]
    dtype = T.float16
    accum_dtype = T.float32
    block_mask_dtype = T.bool

    @T.macro
    def softmax(acc_s, acc_s_cast, scores_max, scores_max_prev, scores_scale, scores_sum, logsum):
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

    @T.prim_func
    def blocksparse_flashattn(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        BlockSparseMask: T.Tensor(block_mask_shape, block_mask_dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (
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
            block_mask = T.alloc_local([downsample_len], block_mask_dtype)

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            for vj in T.serial(downsample_len):
                block_mask[vj] = BlockSparseMask[bz, by, bx, vj]

            loop_range = (
                T.min(T.ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                if is_causal
                else T.ceildiv(seq_len, block_N)
            )
            for k in T.Pipelined(loop_range, num_stages=num_stages):
                if block_mask[k] != 0:
                    T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                    for i, j in T.Parallel(block_M, block_N):
                        if is_causal:
                            acc_s[i, j] = T.if_then_else(
                                bx * block_M + i >= k * block_N + j,
                                0,
                                -T.infinity(accum_dtype),
                            )
                        else:
                            acc_s[i, j] = T.if_then_else(
                                k * block_N + j < seq_len, 0, -T.infinity(accum_dtype)
                            )
                    T.gemm(
                        Q_shared,
                        K_shared,
                        acc_s,
                        transpose_B=True,
                        policy=T.GemmWarpPolicy.FullRow,
                    )
                    softmax(
                        acc_s,
                        acc_s_cast,
                        scores_max,
                        scores_max_prev,
                        scores_scale,
                        scores_sum,
                        logsum,
                    )
                    for i, j in T.Parallel(block_M, dim):
                        acc_o[i, j] *= scores_scale[i]
                    T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                    T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return blocksparse_flashattn


def inputs(rng, batch, heads, seq_len, dim, downsample_len, **_):
    shape = (batch, heads, seq_len, dim)
    tensors = tuple(rng.standard_normal(shape).astype(np.float16) for _ in range(3))
    mask = rng.random((batch, heads, downsample_len, downsample_len)) < 0.4
    # The diagonal is always on: a query that sees no key at all has no softmax.
    mask |= np.eye(downsample_len, dtype=bool)
    return (*tensors, mask)


def reference(q, k, v, mask, is_causal, **_):
    from tests.kernels.references import attention, causal

    length = q.shape[2]
    before = causal(length, length) if is_causal else np.ones((length, length), bool)

    def allowed(sample, head):
        blocks = mask[sample, head].repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
        return before & blocks[:length, :length]

    return (attention(q, k, v, allowed),)
