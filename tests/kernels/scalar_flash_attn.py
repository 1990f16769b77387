"""Softmax over a row of scalar products q * k, weighted by v, in one online and one final pass."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def tl_scalar_flash_attn(Q, K, V, BLOCK_B, BLOCK_S):
    B, S = T.const("B, S")
    dtype = T.float32
    log2_e = 1.44269504
    Q: T.Tensor((B, S), dtype)
    K: T.Tensor((B, S), dtype)
    V: T.Tensor((B, S), dtype)
    O = T.empty((B, S), dtype)

    with T.Kernel(T.ceildiv(B, BLOCK_B), threads=128) as bx:
        Q_local = T.alloc_fragment((BLOCK_B, BLOCK_S), dtype)
        K_local = T.alloc_fragment((BLOCK_B, BLOCK_S), dtype)
        V_local = T.alloc_fragment((BLOCK_B, BLOCK_S), dtype)
        scores = T.alloc_fragment((BLOCK_B, BLOCK_S), dtype)
        tile_max = T.alloc_fragment((BLOCK_B,), dtype)
        row_max = T.alloc_fragment((BLOCK_B,), dtype)
        tile_sum = T.alloc_fragment((BLOCK_B,), dtype)
        row_sum = T.alloc_fragment((BLOCK_B,), dtype)

        T.fill(row_max, -T.infinity(dtype))
        T.fill(row_sum, 0)
        for s in T.Pipelined(T.ceildiv(S, BLOCK_S), num_stages=2):
            T.copy(Q[bx * BLOCK_B, s * BLOCK_S], Q_local)
            T.copy(K[bx * BLOCK_B, s * BLOCK_S], K_local)
            for i, j in T.Parallel(BLOCK_B, BLOCK_S):
                scores[i, j] = T.if_then_else(
                    s * BLOCK_S + j < S,
                    Q_local[i, j] * K_local[i, j] * log2_e,
                    -T.infinity(dtype),
                )
            T.reduce_max(scores, tile_max, dim=1)
            for i in T.Parallel(BLOCK_B):
                tile_max[i] = T.max(tile_max[i], row_max[i])
                row_sum[i] *= T.exp2(row_max[i] - tile_max[i])
                row_max[i] = tile_max[i]
            for i, j in T.Parallel(BLOCK_B, BLOCK_S):
                scores[i, j] = T.exp2(scores[i, j] - row_max[i])
            T.reduce_sum(scores, tile_sum, dim=1)
            for i in T.Parallel(BLOCK_B):
                row_sum[i] += tile_sum[i]

        for s in T.Pipelined(T.ceildiv(S, BLOCK_S), num_stages=2):
            T.copy(Q[bx * BLOCK_B, s * BLOCK_S], Q_local)
            T.copy(K[bx * BLOCK_B, s * BLOCK_S], K_local)
            T.copy(V[bx * BLOCK_B, s * BLOCK_S], V_local)
            for i, j in T.Parallel(BLOCK_B, BLOCK_S):
                weight = T.exp2(Q_local[i, j] * K_local[i, j] * log2_e - row_max[i])
                scores[i, j] = weight / row_sum[i] * V_local[i, j]
            T.copy(scores, O[bx * BLOCK_B, s * BLOCK_S])

    return O


def inputs(rng, B, S, **_):
    return tuple(rng.standard_normal((B, S)).astype(np.float32) for _ in range(3))


def reference(q, k, v, **_):
    scores = q * k
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True) * v,)
