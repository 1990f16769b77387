"""Flash attention forward with grouped key/value heads and four masks.

    python examples/flash_attention.py
    python examples/flash_attention.py --mask sliding_window --seq-len 777 --heads 6 --groups 3

The score matrix never leaves the chip: keys come in blocks, and each block updates a running
maximum, a running sum and the output so far (see softmax.py). A mask is one Python function of two
positions, traced into the kernel, and a range of key blocks outside of which nothing is visible.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-3  # results and probabilities are rounded to float16
MASKS = ("full", "causal", "block_causal", "sliding_window")


# tilelang: set kv_heads=2
@tilelang.jit
def flash_attention(Q, K, V, mask="full", span=64, block_M=64, block_N=64, num_stages=1):
    batch, seq_len, heads, dim, kv_heads = T.const("batch, seq_len, heads, dim, kv_heads")
    Q: T.Tensor((batch, seq_len, heads, dim), T.float16)
    K: T.Tensor((batch, seq_len, kv_heads, dim), T.float16)
    V: T.Tensor((batch, seq_len, kv_heads, dim), T.float16)
    O = T.empty((batch, seq_len, heads, dim), T.float16)
    groups = heads // kv_heads
    scale = dim**-0.5 * 1.44269504  # log2(e): all exponentials are base 2

    with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=128) as (bx, head, sample):
        Q_tile = T.alloc_shared((block_M, dim), T.float16)
        K_tile = T.alloc_shared((block_N, dim), T.float16)
        V_tile = T.alloc_shared((block_N, dim), T.float16)
        scores = T.alloc_fragment((block_M, block_N), T.float32)
        weights = T.alloc_fragment((block_M, block_N), T.float16)
        out = T.alloc_fragment((block_M, dim), T.float32)
        peak = T.alloc_fragment((block_M,), T.float32)
        old_peak = T.alloc_fragment((block_M,), T.float32)
        shrink = T.alloc_fragment((block_M,), T.float32)
        block_sum = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)

        first_query = bx * block_M
        T.copy(Q[sample, first_query : first_query + block_M, head, :], Q_tile)
        T.clear(out)
        T.clear(total)
        # Finite, so that a row whose keys are all hidden so far subtracts no two infinities.
        T.fill(peak, -1e30)

        first_key, end_key = key_range(mask, span, first_query, block_M, seq_len)
        for k in T.Pipelined(
            first_key // block_N, T.ceildiv(end_key, block_N), num_stages=num_stages
        ):
            T.copy(K[sample, k * block_N : (k + 1) * block_N, head // groups, :], K_tile)
            T.copy(V[sample, k * block_N : (k + 1) * block_N, head // groups, :], V_tile)
            for i, j in T.Parallel(block_M, block_N):
                key = k * block_N + j
                scores[i, j] = T.if_then_else(
                    key < seq_len and visible(mask, span, first_query + i, key),
                    0,
                    -T.infinity(T.float32),
                )
            T.gemm(Q_tile, K_tile, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

            T.copy(peak, old_peak)
            T.reduce_max(scores, peak, dim=1, clear=False)
            for i in T.Parallel(block_M):
                shrink[i] = T.exp2((old_peak[i] - peak[i]) * scale)
            for i, j in T.Parallel(block_M, block_N):
                scores[i, j] = T.exp2((scores[i, j] - peak[i]) * scale)
            T.reduce_sum(scores, block_sum, dim=1)
            for i in T.Parallel(block_M):
                total[i] = total[i] * shrink[i] + block_sum[i]
            for i, j in T.Parallel(block_M, dim):
                out[i, j] *= shrink[i]
            T.copy(scores, weights)
            T.gemm(weights, V_tile, out, policy=T.GemmWarpPolicy.FullRow)

        for i, j in T.Parallel(block_M, dim):
            out[i, j] /= total[i]
        T.copy(out, O[sample, first_query : first_query + block_M, head, :])

    return O


def visible(mask, span, query, key):
    """Whether a query may see a key: device expressions in the kernel, arrays in the reference."""
    if mask == "causal":
        return key <= query
    if mask == "block_causal":
        return key // span <= query // span
    if mask == "sliding_window":
        return (key <= query) & (key > query - span)
    return key >= 0


def key_range(mask, span, first_query, block_M, seq_len):
    """The keys that any query of the block can see: the others are never read."""
    end_query = first_query + block_M
    if mask == "causal":
        return 0, T.min(seq_len, end_query)
    if mask == "block_causal":
        return 0, T.min(seq_len, T.ceildiv(end_query, span) * span)
    if mask == "sliding_window":
        return T.max(0, first_query - span + 1), T.min(seq_len, end_query)
    return 0, seq_len


def reference(Q, K, V, mask="full", span=64):
    groups = Q.shape[2] // K.shape[2]
    Q, K, V = (x.astype(np.float64) for x in (Q, K, V))
    K, V = np.repeat(K, groups, axis=2), np.repeat(V, groups, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", Q, K) * Q.shape[-1] ** -0.5
    position = np.arange(Q.shape[1])
    allowed = visible(mask, span, position[:, None], position[None, :])
    scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights, V)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mask", choices=(*MASKS, "all"), default="all")
    parser.add_argument("--span", type=int, default=50, help="window, or block of block_causal")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--groups", type=int, default=3, help="query heads per key/value head")
    parser.add_argument("--seq-len", type=int, default=333)
    parser.add_argument("--dim", type=int, default=64)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    heads = (args.heads, args.heads // args.groups, args.heads // args.groups)
    Q, K, V = (
        rng.standard_normal((args.batch, args.seq_len, h, args.dim)).astype(np.float16)
        for h in heads
    )
    worst = 0.0
    for mask in MASKS if args.mask == "all" else (args.mask,):
        out = flash_attention(Q, K, V, mask=mask, span=args.span).astype(np.float64)
        expected = reference(Q, K, V, mask, args.span)
        error = np.linalg.norm(out - expected) / np.linalg.norm(expected)
        worst = max(worst, float(error))
        print(f"{mask:<15} {args.seq_len} keys, {heads[0]}/{heads[1]} heads: error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
