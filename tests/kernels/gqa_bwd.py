"""Backward pass of grouped-query attention, and the forward pass that saves what it needs.

Each block of the backward kernel owns a block of keys. With atomics, dQ, dK and dV are added into
fp32 zeros; split, the query heads of one group write separate dK and dV and the caller adds them.
``lse`` is the base-2 logarithm of the softmax denominator, so that exp2 gives weights back.
"""

import numpy as np

import tilelang
import tilelang.language as T

LOG2_E = 1.44269504


@tilelang.jit(out_idx=[3, 4])
def flashattn_fwd(batch, heads, seq_len, dim_qk, dim_v, is_causal, block_M, block_N, groups=1):
    scale = (1.0 / dim_qk) ** 0.5 * LOG2_E
    head_kv = heads // groups
    q_shape = [batch, seq_len, heads, dim_qk]
    k_shape = [batch, seq_len, head_kv, dim_qk]
    v_shape = [batch, seq_len, head_kv, dim_v]
    dtype = T.float16
    accum_dtype = T.float32

    @T.prim_func
    def flash_fwd(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(k_shape, dtype),
        V: T.Tensor(v_shape, dtype),
        Output: T.Tensor([batch, seq_len, heads, dim_v], dtype),
        lse: T.Tensor([batch, heads, seq_len], accum_dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=256) as (
            bx,
            by,
            bz,
        ):
            Q_shared = T.alloc_shared([block_M, dim_qk], dtype)
            K_shared = T.alloc_shared([block_N, dim_qk], dtype)
            V_shared = T.alloc_shared([block_N, dim_v], dtype)
            acc_s = T.alloc_fragment([block_M, block_N], accum_dtype)
            acc_s_cast = T.alloc_fragment([block_M, block_N], dtype)
            acc_o = T.alloc_fragment([block_M, dim_v], accum_dtype)
            scores_max = T.alloc_fragment([block_M], accum_dtype)
            scores_max_prev = T.alloc_fragment([block_M], accum_dtype)
            scores_scale = T.alloc_fragment([block_M], accum_dtype)
            scores_sum = T.alloc_fragment([block_M], accum_dtype)
            logsum = T.alloc_fragment([block_M], accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            loop_range = (
                T.min(T.ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                if is_causal
                else T.ceildiv(seq_len, block_N)
            )
            for k in T.Pipelined(loop_range, num_stages=1):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by // groups, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    last_key = T.min(seq_len - 1, bx * block_M + i) if is_causal else seq_len - 1
                    acc_s[i, j] = T.if_then_else(
                        k * block_N + j > last_key, -T.infinity(accum_dtype), 0
                    )
                T.gemm(
                    Q_shared,
                    K_shared,
                    acc_s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                )
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by // groups, :], V_shared)
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_M, dim_v):
                    acc_o[i, j] *= scores_scale[i]
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.copy(acc_s, acc_s_cast)
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
            for i, j in T.Parallel(block_M, dim_v):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])
            for i in T.Parallel(block_M):
                logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
            T.copy(logsum, lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return flash_fwd


@tilelang.jit(out_idx=[2])
def flashattn_bwd_preprocess(batch, heads, seq_len, dim_v):
    """Delta, the row sums of O * dO."""
    dtype = T.float16
    accum_dtype = T.float32
    shape = [batch, seq_len, heads, dim_v]
    blk = 32

    @T.prim_func
    def flash_bwd_prep(
        O: T.Tensor(shape, dtype),
        dO: T.Tensor(shape, dtype),
        Delta: T.Tensor([batch, heads, seq_len], accum_dtype),
    ):
        with T.Kernel(heads, T.ceildiv(seq_len, blk), batch) as (bx, by, bz):
            o = T.alloc_fragment([blk, blk], dtype)
            do = T.alloc_fragment([blk, blk], dtype)
            acc = T.alloc_fragment([blk, blk], accum_dtype)
            delta = T.alloc_fragment([blk], accum_dtype)
            T.clear(acc)
            for k in range(T.ceildiv(dim_v, blk)):
                rows = by * blk
                columns = k * blk
                T.copy(O[bz, rows : rows + blk, bx, columns : columns + blk], o)
                T.copy(dO[bz, rows : rows + blk, bx, columns : columns + blk], do)
                for i, j in T.Parallel(blk, blk):
                    acc[i, j] += T.cast(o[i, j], accum_dtype) * T.cast(do[i, j], accum_dtype)
            T.reduce_sum(acc, delta, 1)
            T.copy(delta, Delta[bz, bx, by * blk : (by + 1) * blk])

    return flash_bwd_prep


@tilelang.jit(out_idx=[1])
def flashattn_bwd_postprocess(batch, heads, seq_len, dim_qk):
    dtype = T.float16
    accum_dtype = T.float32
    shape = [batch, seq_len, heads, dim_qk]
    blk = 64

    @T.prim_func
    def flash_bwd_post(dQ: T.Tensor(shape, accum_dtype), dQ_out: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(seq_len, blk), heads, batch, threads=128) as (
            bx,
            by,
            bz,
        ):
            T.copy(
                dQ[bz, bx * blk : (bx + 1) * blk, by, :],
                dQ_out[bz, bx * blk : (bx + 1) * blk, by, :],
            )

    return flash_bwd_post


@tilelang.jit
def flashattn_bwd_atomic_add(
    batch,
    heads,
    seq_len,
    dim_qk,
    dim_v,
    is_causal,
    block_M,
    block_N,
    threads=256,
    num_stages=2,
    groups=1,
):
    sm_scale = (1.0 / dim_qk) ** 0.5
    scale = sm_scale * LOG2_E
    head_kv = heads // groups
    q_shape = [batch, seq_len, heads, dim_qk]
    k_shape = [batch, seq_len, head_kv, dim_qk]
    v_shape = [batch, seq_len, head_kv, dim_v]
    dtype = T.float16
    accum_dtype = T.float32

    @T.prim_func
    def flash_bwd(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(k_shape, dtype),
        V: T.Tensor(v_shape, dtype),
        dO: T.Tensor([batch, seq_len, heads, dim_v], dtype),
        lse: T.Tensor([batch, heads, seq_len], accum_dtype),
        Delta: T.Tensor([batch, heads, seq_len], accum_dtype),
        dQ: T.Tensor(q_shape, accum_dtype),
        dK: T.Tensor(k_shape, accum_dtype),
        dV: T.Tensor(v_shape, accum_dtype),
    ):
        with T.Kernel(heads, T.ceildiv(seq_len, block_M), batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
            K_shared = T.alloc_shared([block_M, dim_qk], dtype)
            V_shared = T.alloc_shared([block_M, dim_v], dtype)
            q = T.alloc_shared([block_N, dim_qk], dtype)
            do = T.alloc_shared([block_N, dim_v], dtype)
            dsT_shared = T.alloc_shared([block_M, block_N], dtype)
            lse_shared = T.alloc_shared([block_N], accum_dtype)
            delta = T.alloc_shared([block_N], accum_dtype)
            qkT = T.alloc_fragment([block_M, block_N], accum_dtype)
            dsT = T.alloc_fragment([block_M, block_N], accum_dtype)
            qkT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dsT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dv = T.alloc_fragment([block_M, dim_v], accum_dtype)
            dk = T.alloc_fragment([block_M, dim_qk], accum_dtype)
            dq = T.alloc_fragment([block_N, dim_qk], accum_dtype)
            dk_shared = T.alloc_shared([block_M, dim_qk], accum_dtype)
            dv_shared = T.alloc_shared([block_M, dim_v], accum_dtype)

            T.copy(K[bz, by * block_M : (by + 1) * block_M, bx // groups, :], K_shared)
            T.copy(V[bz, by * block_M : (by + 1) * block_M, bx // groups, :], V_shared)
            T.clear(dv)
            T.clear(dk)
            loop_st = T.floordiv(by * block_M, block_N) if is_causal else 0
            loop_ed = T.ceildiv(seq_len, block_N)
            for k in T.Pipelined(loop_st, loop_ed, num_stages=num_stages):
                T.copy(Q[bz, k * block_N : (k + 1) * block_N, bx, :], q)
                T.clear(qkT)
                T.gemm(K_shared, q, qkT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dO[bz, k * block_N : (k + 1) * block_N, bx, :], do)
                T.clear(dsT)
                T.gemm(V_shared, do, dsT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(lse[bz, bx, k * block_N : (k + 1) * block_N], lse_shared)
                for i, j in T.Parallel(block_M, block_N):
                    qkT[i, j] = T.exp2(qkT[i, j] * scale - lse_shared[j])
                if is_causal:
                    for i, j in T.Parallel(block_M, block_N):
                        qkT[i, j] = T.if_then_else(
                            by * block_M + i <= k * block_N + j, qkT[i, j], 0
                        )
                T.copy(qkT, qkT_cast)
                T.gemm(qkT_cast, do, dv, policy=T.GemmWarpPolicy.FullRow)
                T.copy(Delta[bz, bx, k * block_N : (k + 1) * block_N], delta)
                for i, j in T.Parallel(block_M, block_N):
                    dsT_cast[i, j] = qkT[i, j] * (dsT[i, j] - delta[j]) * sm_scale
                T.gemm(dsT_cast, q, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dsT_cast, dsT_shared)
                T.clear(dq)
                T.gemm(dsT_shared, K_shared, dq, transpose_A=True)
                T.atomic_add(dQ[bz, k * block_N : (k + 1) * block_N, bx, :], dq)
            T.copy(dv, dv_shared)
            T.atomic_add(dV[bz, by * block_M : (by + 1) * block_M, bx // groups, :], dv_shared)
            T.copy(dk, dk_shared)
            T.atomic_add(dK[bz, by * block_M : (by + 1) * block_M, bx // groups, :], dk_shared)

    return flash_bwd


@tilelang.jit
def flashattn_bwd_split(
    batch,
    heads,
    seq_len,
    dim_qk,
    dim_v,
    is_causal,
    block_M,
    block_N,
    threads=256,
    num_stages=2,
    groups=1,
):
    sm_scale = (1.0 / dim_qk) ** 0.5
    scale = sm_scale * LOG2_E
    head_kv = heads // groups
    q_shape = [batch, seq_len, heads, dim_qk]
    k_shape = [batch, seq_len, head_kv, dim_qk]
    v_shape = [batch, seq_len, head_kv, dim_v]
    dk_shape = [groups, batch, seq_len, head_kv, dim_qk]
    dv_shape = [groups, batch, seq_len, head_kv, dim_v]
    dtype = T.float16
    accum_dtype = T.float32

    @T.prim_func
    def flash_bwd(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(k_shape, dtype),
        V: T.Tensor(v_shape, dtype),
        dO: T.Tensor([batch, seq_len, heads, dim_v], dtype),
        lse: T.Tensor([batch, heads, seq_len], accum_dtype),
        Delta: T.Tensor([batch, heads, seq_len], accum_dtype),
        dQ: T.Tensor(q_shape, accum_dtype),
        dK: T.Tensor(dk_shape, dtype),
        dV: T.Tensor(dv_shape, dtype),
    ):
        with T.Kernel(heads, T.ceildiv(seq_len, block_M), batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
            K_shared = T.alloc_shared([block_M, dim_qk], dtype)
            V_shared = T.alloc_shared([block_M, dim_v], dtype)
            q = T.alloc_shared([block_N, dim_qk], dtype)
            do = T.alloc_shared([block_N, dim_v], dtype)
            dsT_shared = T.alloc_shared([block_M, block_N], dtype)
            lse_shared = T.alloc_shared([block_N], accum_dtype)
            delta = T.alloc_shared([block_N], accum_dtype)
            qkT = T.alloc_fragment([block_M, block_N], accum_dtype)
            dsT = T.alloc_fragment([block_M, block_N], accum_dtype)
            qkT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dsT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dv = T.alloc_fragment([block_M, dim_v], accum_dtype)
            dk = T.alloc_fragment([block_M, dim_qk], accum_dtype)
            dq = T.alloc_fragment([block_N, dim_qk], accum_dtype)

            T.copy(K[bz, by * block_M : (by + 1) * block_M, bx // groups, :], K_shared)
            T.copy(V[bz, by * block_M : (by + 1) * block_M, bx // groups, :], V_shared)
            T.clear(dv)
            T.clear(dk)
            loop_st = T.floordiv(by * block_M, block_N) if is_causal else 0
            loop_ed = T.ceildiv(seq_len, block_N)
            for k in T.Pipelined(loop_st, loop_ed, num_stages=num_stages):
                T.copy(Q[bz, k * block_N : (k + 1) * block_N, bx, :], q)
                T.copy(dO[bz, k * block_N : (k + 1) * block_N, bx, :], do)
                T.gemm(
                    K_shared,
                    q,
                    qkT,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                T.gemm(
                    V_shared,
                    do,
                    dsT,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                T.copy(lse[bz, bx, k * block_N : (k + 1) * block_N], lse_shared)
                T.copy(Delta[bz, bx, k * block_N : (k + 1) * block_N], delta)
                for i, j in T.Parallel(block_M, block_N):
                    qkT[i, j] = T.exp2(qkT[i, j] * scale - lse_shared[j])
                    if is_causal:
                        qkT[i, j] = T.if_then_else(
                            by * block_M + i <= k * block_N + j, qkT[i, j], 0
                        )
                T.copy(qkT, qkT_cast)
                T.gemm(qkT_cast, do, dv, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_M, block_N):
                    dsT_cast[i, j] = qkT[i, j] * (dsT[i, j] - delta[j]) * sm_scale
                T.gemm(dsT_cast, q, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dsT_cast, dsT_shared)
                T.gemm(dsT_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                for i, j in T.Parallel(block_N, dim_qk):
                    T.atomic_add(dQ[bz, k * block_N + i, bx, j], dq[i, j])
            member = bx % groups
            rows = by * block_M
            T.copy(dv, dV[member, bz, rows : rows + block_M, bx // groups, :])
            T.copy(dk, dK[member, bz, rows : rows + block_M, bx // groups, :])

    return flash_bwd


def _gradients(q, k, v, do, is_causal, groups):
    """Everything the kernels exchange, in float64: O, lse, Delta, dQ, and dK, dV per query head."""
    k, v = np.repeat(k, groups, axis=2), np.repeat(v, groups, axis=2)
    sm_scale = 1 / np.sqrt(q.shape[-1])
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * sm_scale
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    peak = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - peak)
    total = weights.sum(axis=-1, keepdims=True)
    lse = (np.log2(total) + peak * np.log2(np.e))[..., 0]
    weights /= total
    out = np.einsum("bhqk,bkhd->bqhd", weights, v)
    delta = np.einsum("bqhd,bqhd->bhq", out, do)
    dweights = np.einsum("bqhd,bkhd->bhqk", do, v)
    ds = weights * (dweights - delta[..., None]) * sm_scale
    dq = np.einsum("bhqk,bkhd->bqhd", ds, k)
    dk = np.einsum("bhqk,bqhd->bkhd", ds, q)
    dv = np.einsum("bhqk,bqhd->bkhd", weights, do)
    return out, lse, delta, dq, dk, dv


def _tensors(rng, batch, heads, seq_len, dim_qk, dim_v, groups):
    head_kv = heads // groups
    shapes = ((heads, dim_qk), (head_kv, dim_qk), (head_kv, dim_v), (heads, dim_v))
    return tuple(
        rng.standard_normal((batch, seq_len, *shape)).astype(np.float16) for shape in shapes
    )


def inputs_forward(rng, batch, heads, seq_len, dim_qk, dim_v, groups, **_):
    return _tensors(rng, batch, heads, seq_len, dim_qk, dim_v, groups)[:3]


def inputs_preprocess(rng, batch, heads, seq_len, dim_v, **_):
    shape = (batch, seq_len, heads, dim_v)
    return tuple(rng.standard_normal(shape).astype(np.float16) for _ in range(2))


def inputs_postprocess(rng, batch, heads, seq_len, dim_qk, **_):
    return (rng.standard_normal((batch, seq_len, heads, dim_qk)).astype(np.float32),)


def _inputs_backward(rng, batch, heads, seq_len, dim_qk, dim_v, is_causal, groups):
    tensors = _tensors(rng, batch, heads, seq_len, dim_qk, dim_v, groups)
    q, k, v, do = (x.astype(np.float64) for x in tensors)
    _, lse, delta, *_ = _gradients(q, k, v, do, is_causal, groups)
    return (*tensors, *(np.ascontiguousarray(x, np.float32) for x in (lse, delta)))


def inputs_atomic(rng, batch, heads, seq_len, dim_qk, dim_v, is_causal, groups, **_):
    given = _inputs_backward(rng, batch, heads, seq_len, dim_qk, dim_v, is_causal, groups)
    return given + tuple(np.zeros(x.shape, np.float32) for x in given[:3])


def inputs_split(rng, batch, heads, seq_len, dim_qk, dim_v, is_causal, groups, **_):
    given = _inputs_backward(rng, batch, heads, seq_len, dim_qk, dim_v, is_causal, groups)
    dq = np.zeros(given[0].shape, np.float32)
    return (*given, dq, *(np.zeros((groups, *x.shape), np.float16) for x in given[1:3]))


def reference_forward(q, k, v, is_causal, groups, dim_v, **_):
    dout = np.zeros((*q.shape[:3], dim_v))
    out, lse, *_ = _gradients(q, k, v, dout, is_causal, groups)
    return out, lse


def reference_preprocess(o, do, **_):
    return (np.einsum("bqhd,bqhd->bhq", o, do),)


def reference_postprocess(dq, **_):
    return (dq,)


def reference_atomic(q, k, v, do, *_given, is_causal, groups, **_):
    *_, dq, dk, dv = _gradients(q, k, v, do, is_causal, groups)
    return dq, *(x.reshape(*x.shape[:2], -1, groups, x.shape[-1]).sum(axis=3) for x in (dk, dv))


def reference_split(q, k, v, do, *_given, is_causal, groups, **_):
    *_, dq, dk, dv = _gradients(q, k, v, do, is_causal, groups)
    by_member = [x.reshape(*x.shape[:2], -1, groups, x.shape[-1]) for x in (dk, dv)]
    return dq, *(np.moveaxis(x, 3, 0) for x in by_member)
