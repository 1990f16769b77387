"""Causal linear attention in chunks: o_t = q_t (k_1^T v_1 + ... + k_t^T v_t), state carried along.

Blocks own a (key-dim, value-dim) tile of the state; the tiles of one value-dim add their share of
the output atomically. Returns the final state and fills O.
"""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[4], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def tl_fused_chunk_fwd_kernel(B, S, H, DK, DV, dtype=T.float16, scale=None):
    if scale is None:
        scale = DK**-0.5
    accum_dtype = T.float32
    chunk_size = 64
    BK = BV = 64
    NK = T.ceildiv(DK, BK)
    NV = T.ceildiv(DV, BV)
    NT = T.ceildiv(S, chunk_size)

    @T.prim_func
    def fused_chunk_linear_attn_fwd(
        Q: T.Tensor([B, S, H, DK], dtype),
        K: T.Tensor([B, S, H, DK], dtype),
        V: T.Tensor([B, S, H, DV], dtype),
        O: T.Tensor([B, S, H, DV], accum_dtype),
        final_state: T.Tensor([B, H, DK, DV], accum_dtype),
    ):
        with T.Kernel(NV, NK, B * H) as (i_v, i_k, i_bh):
            i_b = i_bh // H
            i_h = i_bh % H

            q = T.alloc_shared([chunk_size, BK], dtype)
            k = T.alloc_shared([chunk_size, BK], dtype)
            v = T.alloc_shared([chunk_size, BV], dtype)
            h = T.alloc_fragment([BK, BV], accum_dtype)
            h_shared = T.alloc_shared([BK, BV], dtype)
            s = T.alloc_fragment([chunk_size, chunk_size], accum_dtype)
            s_shared = T.alloc_shared([chunk_size, chunk_size], dtype)
            o = T.alloc_fragment([chunk_size, BV], accum_dtype)
            o_shared = T.alloc_shared([chunk_size, BV], accum_dtype)

            T.use_swizzle(10)
            T.clear(h)
            for i in T.Pipelined(0, NT, num_stages=2):
                for row, col in T.Parallel(chunk_size, BK):
                    q[row, col] = Q[i_b, i * chunk_size + row, i_h, i_k * BK + col] * scale
                T.copy(
                    K[
                        i_b,
                        i * chunk_size : (i + 1) * chunk_size,
                        i_h,
                        i_k * BK : (i_k + 1) * BK,
                    ],
                    k,
                )
                T.copy(
                    V[
                        i_b,
                        i * chunk_size : (i + 1) * chunk_size,
                        i_h,
                        i_v * BV : (i_v + 1) * BV,
                    ],
                    v,
                )

                T.gemm(q, k, s, clear_accum=True, transpose_B=True)
                for row, col in T.Parallel(chunk_size, chunk_size):
                    s_shared[row, col] = T.if_then_else(row >= col, s[row, col], 0)
                T.gemm(s_shared, v, o, clear_accum=True)
                T.copy(h, h_shared)
                T.gemm(k, v, h, transpose_A=True)
                T.gemm(q, h_shared, o)
                T.copy(o, o_shared)
                T.atomic_add(
                    O[
                        i_b,
                        i * chunk_size : (i + 1) * chunk_size,
                        i_h,
                        i_v * BV : (i_v + 1) * BV,
                    ],
                    o_shared,
                )

            T.copy(
                h,
                final_state[i_b, i_h, i_k * BK : (i_k + 1) * BK, i_v * BV : (i_v + 1) * BV],
            )

    return fused_chunk_linear_attn_fwd


def inputs(rng, B, S, H, DK, DV, **_):
    tensors = [rng.standard_normal((B, S, H, D)).astype(np.float16) for D in (DK, DK, DV)]
    return (*tensors, np.zeros((B, S, H, DV), np.float32))


def reference(q, k, v, _o, scale=None, **_):
    scale = scale or q.shape[-1] ** -0.5
    out = np.empty((*q.shape[:3], v.shape[3]))
    for sample, head in np.ndindex(q.shape[0], q.shape[2]):
        scores = np.tril(q[sample, :, head] @ k[sample, :, head].T) * scale
        out[sample, :, head] = scores @ v[sample, :, head]
    return np.einsum("bshk,bshv->bhkv", k, v), out
