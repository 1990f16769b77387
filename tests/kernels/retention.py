"""Retention in chunks: linear attention whose past fades by a factor of its own in every head."""

import numpy as np

import tilelang
import tilelang.language as T

BLOCK = 64


@tilelang.jit(out_idx=[3], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def chunk_retention_fwd_kernel(B, S, H, DK, DV, dtype=T.float16, scale=None):
    if scale is None:
        scale = DK**-0.5
    accum_dtype = T.float32
    chunk_size = 64
    BK = BV = BLOCK
    NK = T.ceildiv(DK, BK)
    NV = T.ceildiv(DV, BV)
    NT = T.ceildiv(S, chunk_size)

    @T.prim_func
    def chunk_retention_fwd(
        Q: T.Tensor([B, S, H, DK], dtype),
        K: T.Tensor([B, S, H, DK], dtype),
        V: T.Tensor([B, S, H, DV], dtype),
        O: T.Tensor([NK, B, S, H, DV], dtype),
    ):
        with T.Kernel(NV, NK, B * H) as (i_v, i_k, i_bh):
            i_b = i_bh // H
            i_h = i_bh % H
            log_decay = T.alloc_var(accum_dtype)
            log_decay = T.log2(1 - T.exp2(-5.0 - 1.0 * i_h))

            q = T.alloc_shared([chunk_size, BK], dtype)
            k = T.alloc_shared([chunk_size, BK], dtype)
            v = T.alloc_shared([chunk_size, BV], dtype)
            h = T.alloc_fragment([BK, BV], accum_dtype)
            h_shared = T.alloc_shared([BK, BV], dtype)
            s = T.alloc_fragment([chunk_size, chunk_size], accum_dtype)
            s_shared = T.alloc_shared([chunk_size, chunk_size], dtype)
            o = T.alloc_fragment([chunk_size, BV], accum_dtype)
            T.clear(h)

            for i in T.Pipelined(0, NT):
                rows = i * chunk_size
                for row, col in T.Parallel(chunk_size, BK):
                    q[row, col] = Q[i_b, rows + row, i_h, i_k * BK + col] * scale
                T.copy(K[i_b, rows : rows + chunk_size, i_h, i_k * BK : (i_k + 1) * BK], k)
                T.copy(V[i_b, rows : rows + chunk_size, i_h, i_v * BV : (i_v + 1) * BV], v)

                T.gemm(q, k, s, clear_accum=True, transpose_B=True)
                for row, col in T.Parallel(chunk_size, chunk_size):
                    s_shared[row, col] = T.if_then_else(
                        row >= col, s[row, col] * T.exp2((row - col) * log_decay), 0
                    )
                T.copy(h, h_shared)
                T.gemm(q, h_shared, o, clear_accum=True)
                for row, col in T.Parallel(chunk_size, BV):
                    o[row, col] = T.exp2((row + 1) * log_decay) * o[row, col]
                T.gemm(s_shared, v, o)

                # A key decays from its place to the end of the chunk before it joins the state.
                for row, col in T.Parallel(chunk_size, BV):
                    v[row, col] = v[row, col] * T.exp2((chunk_size - row - 1) * log_decay)
                for row, col in T.Parallel(BK, BV):
                    h[row, col] = T.exp2(chunk_size * log_decay) * h[row, col]
                T.copy(
                    o,
                    O[
                        i_k,
                        i_b,
                        rows : rows + chunk_size,
                        i_h,
                        i_v * BV : (i_v + 1) * BV,
                    ],
                )
                T.gemm(k, v, h, transpose_A=True)

    return chunk_retention_fwd


def inputs(rng, B, S, H, DK, DV, **_):
    shapes = [(B, S, H, DK), (B, S, H, DK), (B, S, H, DV)]
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in shapes)


def reference(q, k, v, scale=None, **_):
    scale = scale or q.shape[-1] ** -0.5
    steps = np.arange(q.shape[1])
    distance = steps[:, None] - steps
    starts = range(0, q.shape[-1], BLOCK)
    out = np.empty((len(starts), *q.shape[:3], v.shape[3]))
    for head in range(q.shape[2]):
        log_decay = np.log2(1 - np.exp2(-5.0 - head))
        decay = np.where(distance >= 0, np.exp2(np.maximum(distance, 0) * log_decay), 0) * scale
        for sample in range(len(q)):
            for part, start in enumerate(starts):
                columns = slice(start, start + BLOCK)
                scores = q[sample, :, head, columns] @ k[sample, :, head, columns].T
                out[part, sample, :, head] = (scores * decay) @ v[sample, :, head]
    return (out,)
