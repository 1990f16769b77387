"""Multi-head latent attention, one query per sequence: all heads share one key/value latent.

A score is q_nope . kv + q_pe . k_pe; the value is the latent itself. The keys are split over the
grid when ``num_split`` > 1, and the parts are combined by a second kernel, or, in the persistent
form, by the same kernel after a barrier of the whole grid.
"""

import numpy as np

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504


@tilelang.jit(out_idx=[4])
def flashattn(
    batch,
    heads,
    kv_head_num,
    seqlen_kv,
    dim,
    pe_dim,
    block_N,
    block_H,
    num_split,
    softmax_scale,
):
    scale = softmax_scale * LOG2_E
    dtype = T.float16
    accum_dtype = T.float32
    kv_group_num = heads // kv_head_num
    valid_block_H = min(block_H, kv_group_num)
    assert kv_head_num == 1, "the latent is shared by all heads"
    blocks_per_split = -(-seqlen_kv // (num_split * block_N))

    @T.macro
    def attend(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        acc_o: T.FragmentBuffer([block_H, dim], accum_dtype),
        logsum: T.FragmentBuffer([block_H], accum_dtype),
        scores_max: T.FragmentBuffer([block_H], accum_dtype),
        sample: T.int32,
        head_block: T.int32,
        first_block: T.int32,
    ):
        Q_shared = T.alloc_shared([block_H, dim], dtype)
        Q_pe_shared = T.alloc_shared([block_H, pe_dim], dtype)
        KV_shared = T.alloc_shared([block_N, dim], dtype)
        K_pe_shared = T.alloc_shared([block_N, pe_dim], dtype)
        S_shared = T.alloc_shared([block_H, block_N], dtype)
        acc_s = T.alloc_fragment([block_H, block_N], accum_dtype)
        scores_max_prev = T.alloc_fragment([block_H], accum_dtype)
        scores_scale = T.alloc_fragment([block_H], accum_dtype)
        scores_sum = T.alloc_fragment([block_H], accum_dtype)

        first_head = head_block * valid_block_H
        T.copy(Q[sample, first_head : first_head + block_H, :], Q_shared)
        T.copy(Q_pe[sample, first_head : first_head + block_H, :], Q_pe_shared)
        T.fill(acc_o, 0)
        T.fill(logsum, 0)
        T.fill(scores_max, -1e30)

        for k in T.Pipelined(blocks_per_split, num_stages=2):
            start = (first_block + k) * block_N
            T.copy(KV[sample, start : start + block_N, 0, :], KV_shared)
            T.copy(K_pe[sample, start : start + block_N, 0, :], K_pe_shared)
            T.gemm(
                Q_shared,
                KV_shared,
                acc_s,
                transpose_B=True,
                policy=T.GemmWarpPolicy.FullCol,
                clear_accum=True,
            )
            T.gemm(
                Q_pe_shared,
                K_pe_shared,
                acc_s,
                transpose_B=True,
                policy=T.GemmWarpPolicy.FullCol,
            )
            for i, j in T.Parallel(block_H, block_N):
                if start + j >= seqlen_kv:
                    acc_s[i, j] = -T.infinity(accum_dtype)
            T.copy(scores_max, scores_max_prev)
            T.reduce_max(acc_s, scores_max, dim=1, clear=False)
            for i in T.Parallel(block_H):
                scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
            for i, j in T.Parallel(block_H, block_N):
                acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
            T.reduce_sum(acc_s, scores_sum, dim=1)
            T.copy(acc_s, S_shared)
            for i in T.Parallel(block_H):
                logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
            for i, j in T.Parallel(block_H, dim):
                acc_o[i, j] *= scores_scale[i]
            T.gemm(S_shared, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)
        for i, j in T.Parallel(block_H, dim):
            acc_o[i, j] /= logsum[i]

    @T.macro
    def attend_split(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        glse: T.Tensor([batch, heads, num_split], accum_dtype),
        Output_partial: T.Tensor([batch, heads, num_split, dim], accum_dtype),
    ):
        with T.Kernel(batch, heads // valid_block_H, num_split, threads=256) as (
            bx,
            by,
            bz,
        ):
            acc_o = T.alloc_fragment([block_H, dim], accum_dtype)
            logsum = T.alloc_fragment([block_H], accum_dtype)
            scores_max = T.alloc_fragment([block_H], accum_dtype)
            T.use_swizzle(10)
            attend(
                Q,
                Q_pe,
                KV,
                K_pe,
                acc_o,
                logsum,
                scores_max,
                bx,
                by,
                bz * blocks_per_split,
            )
            for i in T.Parallel(block_H):
                logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
            first_head = by * valid_block_H
            for i in T.Parallel(block_H):
                if i < valid_block_H:
                    glse[bx, first_head + i, bz] = logsum[i]
            for i, j in T.Parallel(block_H, dim):
                if i < valid_block_H:
                    Output_partial[bx, first_head + i, bz, j] = acc_o[i, j]

    @T.macro
    def combine(
        glse: T.Tensor([batch, heads, num_split], accum_dtype),
        Output_partial: T.Tensor([batch, heads, num_split, dim], accum_dtype),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(heads, batch, threads=128) as (by, bz):
            po_local = T.alloc_fragment([dim], accum_dtype)
            o_accum = T.alloc_fragment([dim], accum_dtype)
            lse_max = T.alloc_var(accum_dtype, -T.infinity(accum_dtype))
            lse_sum = T.alloc_var(accum_dtype, 0)

            T.clear(o_accum)
            for k in T.serial(num_split):
                lse_max = T.max(lse_max, glse[bz, by, k])
            for k in T.Pipelined(num_split, num_stages=1):
                lse_sum += T.exp2(glse[bz, by, k] - lse_max)
            for k in T.serial(num_split):
                T.copy(Output_partial[bz, by, k, :], po_local)
                share = T.exp2(glse[bz, by, k] - lse_max) / lse_sum
                for i in T.Parallel(dim):
                    o_accum[i] += po_local[i] * share
            T.copy(o_accum, Output[bz, by, :])

    @T.prim_func
    def main_split(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        glse = T.alloc_global([batch, heads, num_split], accum_dtype)
        Output_partial = T.alloc_global([batch, heads, num_split, dim], accum_dtype)
        attend_split(Q, Q_pe, KV, K_pe, glse, Output_partial)
        combine(glse, Output_partial, Output)

    @T.prim_func
    def main_no_split(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(heads // valid_block_H, batch, threads=256) as (by, bx):
            acc_o = T.alloc_fragment([block_H, dim], accum_dtype)
            logsum = T.alloc_fragment([block_H], accum_dtype)
            scores_max = T.alloc_fragment([block_H], accum_dtype)
            O_shared = T.alloc_shared([block_H, dim], dtype)
            attend(Q, Q_pe, KV, K_pe, acc_o, logsum, scores_max, bx, by, 0)
            T.copy(acc_o, O_shared)
            T.copy(
                O_shared[0:valid_block_H, :],
                Output[bx, by * valid_block_H : (by + 1) * valid_block_H, :],
            )

    if num_split > 1:
        return main_split
    return main_no_split


@tilelang.jit(out_idx=[6])
def flashattn_persistent(
    batch,
    heads,
    kv_head_num,
    seqlen_kv,
    dim,
    pe_dim,
    block_N,
    block_H,
    num_split,
    num_blocks=8,
):
    scale = (1.0 / (dim + pe_dim)) ** 0.5 * LOG2_E
    dtype = T.float16
    accum_dtype = T.float32
    valid_block_H = min(block_H, heads // kv_head_num)
    assert kv_head_num == 1, "the latent is shared by all heads"
    head_blocks = heads // valid_block_H
    blocks_per_split = -(-seqlen_kv // (num_split * block_N))
    parts = batch * head_blocks * num_split
    rows = batch * heads

    @T.prim_func
    def main_split_persistent(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        glse: T.Tensor([batch, heads, num_split], dtype),
        Output_partial: T.Tensor([batch, heads, num_split, dim], dtype),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(num_blocks, threads=256) as block_id:
            Q_shared = T.alloc_shared([block_H, dim], dtype)
            Q_pe_shared = T.alloc_shared([block_H, pe_dim], dtype)
            KV_shared = T.alloc_shared([block_N, dim], dtype)
            K_pe_shared = T.alloc_shared([block_N, pe_dim], dtype)
            S_shared = T.alloc_shared([block_H, block_N], dtype)
            acc_s = T.alloc_fragment([block_H, block_N], accum_dtype)
            acc_o = T.alloc_fragment([block_H, dim], accum_dtype)
            scores_max = T.alloc_fragment([block_H], accum_dtype)
            scores_max_prev = T.alloc_fragment([block_H], accum_dtype)
            scores_scale = T.alloc_fragment([block_H], accum_dtype)
            scores_sum = T.alloc_fragment([block_H], accum_dtype)
            logsum = T.alloc_fragment([block_H], accum_dtype)
            po_local = T.alloc_fragment([dim], accum_dtype)
            o_accum = T.alloc_fragment([dim], accum_dtype)
            lse_max = T.alloc_var(accum_dtype)
            lse_sum = T.alloc_var(accum_dtype)

            for wave in T.serial(T.ceildiv(parts, num_blocks)):
                part = wave * num_blocks + block_id
                if part < parts:
                    split = part % num_split
                    first_head = part // num_split % head_blocks * valid_block_H
                    sample = part // (num_split * head_blocks)
                    T.copy(Q[sample, first_head : first_head + block_H, :], Q_shared)
                    T.copy(Q_pe[sample, first_head : first_head + block_H, :], Q_pe_shared)
                    T.fill(acc_o, 0)
                    T.fill(logsum, 0)
                    T.fill(scores_max, -1e30)
                    for k in T.Pipelined(blocks_per_split, num_stages=2):
                        start = (split * blocks_per_split + k) * block_N
                        T.copy(KV[sample, start : start + block_N, 0, :], KV_shared)
                        T.copy(K_pe[sample, start : start + block_N, 0, :], K_pe_shared)
                        T.clear(acc_s)
                        T.gemm(Q_shared, KV_shared, acc_s, transpose_B=True)
                        T.gemm(Q_pe_shared, K_pe_shared, acc_s, transpose_B=True)
                        for i, j in T.Parallel(block_H, block_N):
                            acc_s[i, j] = T.if_then_else(
                                start + j < seqlen_kv,
                                acc_s[i, j],
                                -T.infinity(accum_dtype),
                            )
                        T.copy(scores_max, scores_max_prev)
                        T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                        for i in T.Parallel(block_H):
                            scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                        for i, j in T.Parallel(block_H, block_N):
                            acc_s[i, j] = T.exp2((acc_s[i, j] - scores_max[i]) * scale)
                        T.reduce_sum(acc_s, scores_sum, dim=1)
                        T.copy(acc_s, S_shared)
                        for i in T.Parallel(block_H):
                            logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                        for i, j in T.Parallel(block_H, dim):
                            acc_o[i, j] *= scores_scale[i]
                        T.gemm(S_shared, KV_shared, acc_o)
                    for i, j in T.Parallel(block_H, dim):
                        if i < valid_block_H:
                            Output_partial[sample, first_head + i, split, j] = (
                                acc_o[i, j] / logsum[i]
                            )
                    for i in T.Parallel(block_H):
                        if i < valid_block_H:
                            glse[sample, first_head + i, split] = (
                                T.log2(logsum[i]) + scores_max[i] * scale
                            )

            T.sync_grid()

            for wave in T.serial(T.ceildiv(rows, num_blocks)):
                row = wave * num_blocks + block_id
                if row < rows:
                    sample = row // heads
                    head = row % heads
                    T.clear(o_accum)
                    lse_max = -T.infinity(accum_dtype)
                    lse_sum = 0
                    for k in T.serial(num_split):
                        lse_max = T.max(lse_max, T.cast(glse[sample, head, k], accum_dtype))
                    for k in T.serial(num_split):
                        share = T.exp2(T.cast(glse[sample, head, k], accum_dtype) - lse_max)
                        lse_sum += share
                        T.copy(Output_partial[sample, head, k, :], po_local)
                        for i in T.Parallel(dim):
                            o_accum[i] += po_local[i] * share
                    for i in T.Parallel(dim):
                        Output[sample, head, i] = o_accum[i] / lse_sum

    return main_split_persistent


def inputs(rng, batch, heads, kv_head_num, seqlen_kv, dim, pe_dim, **_):
    shapes = (
        (batch, heads, dim),
        (batch, heads, pe_dim),
        (batch, seqlen_kv, kv_head_num, dim),
        (batch, seqlen_kv, kv_head_num, pe_dim),
    )
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in shapes)


def inputs_persistent(rng, batch, heads, num_split, dim, **sizes):
    glse = np.zeros((batch, heads, num_split), np.float16)
    partial = np.zeros((batch, heads, num_split, dim), np.float16)
    return (*inputs(rng, batch=batch, heads=heads, dim=dim, **sizes), glse, partial)


def reference(q, q_pe, kv, k_pe, *_scratch, softmax_scale=None, **_):
    if softmax_scale is None:
        softmax_scale = (q.shape[-1] + q_pe.shape[-1]) ** -0.5
    scores = np.einsum("bhd,bkd->bhk", q, kv[:, :, 0])
    scores = (scores + np.einsum("bhd,bkd->bhk", q_pe, k_pe[:, :, 0])) * softmax_scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (np.einsum("bhk,bkd->bhd", weights, kv[:, :, 0]),)
