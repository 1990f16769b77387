"""Softmax of rows, twice: the whole row in one tile, then tile by tile ("online").

    python examples/softmax.py --m 301 --n 4001

The online form reads each row twice but needs room for one tile only: when a tile raises the
maximum, the sum so far is rescaled. Flash attention is built on the same step.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5
LOG2_E = 1.44269504  # exp(x) = exp2(x * log2(e)), and exp2 is one instruction on a GPU


@tilelang.jit
def softmax(x, block_M=4):
    M, N = T.const("M, N")
    x: T.Tensor((M, N), T.float32)
    y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        rows = T.alloc_fragment((block_M, N), T.float32)
        peak = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)

        T.copy(x[bx * block_M, 0], rows)
        T.reduce_max(rows, peak, dim=1)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] = T.exp2((rows[i, j] - peak[i]) * LOG2_E)
        T.reduce_sum(rows, total, dim=1)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] /= total[i]
        T.copy(rows, y[bx * block_M, 0])

    return y


@tilelang.jit
def online_softmax(x, block_M=4, block_N=256):
    M, N = T.const("M, N")
    x: T.Tensor((M, N), T.float32)
    y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        tile = T.alloc_fragment((block_M, block_N), T.float32)
        peak = T.alloc_fragment((block_M,), T.float32)
        new_peak = T.alloc_fragment((block_M,), T.float32)
        tile_sum = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)

        T.fill(peak, -T.infinity(T.float32))
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
            T.copy(x[bx * block_M, k * block_N], tile)
            # What lies past the row reads as 0, which is no neutral element of a maximum.
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] = T.if_then_else(
                    k * block_N + j < N, tile[i, j] * LOG2_E, -T.infinity(T.float32)
                )
            T.copy(peak, new_peak)
            T.reduce_max(tile, new_peak, dim=1, clear=False)
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] = T.exp2(tile[i, j] - new_peak[i])
            T.reduce_sum(tile, tile_sum, dim=1)
            for i in T.Parallel(block_M):
                total[i] = total[i] * T.exp2(peak[i] - new_peak[i]) + tile_sum[i]
            T.copy(new_peak, peak)

        for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
            T.copy(x[bx * block_M, k * block_N], tile)
            for i, j in T.Parallel(block_M, block_N):
                tile[i, j] = T.exp2(tile[i, j] * LOG2_E - peak[i]) / total[i]
            T.copy(tile, y[bx * block_M, k * block_N])

    return y


def reference(x):
    x = x.astype(np.float64)
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=301)
    parser.add_argument("--n", type=int, default=4001)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x = 4 * rng.standard_normal((args.m, args.n), dtype=np.float32)
    expected = reference(x)
    worst = 0.0
    for kernel in (softmax, online_softmax):
        error = np.linalg.norm(kernel(x) - expected) / np.linalg.norm(expected)
        worst = max(worst, float(error))
        name = "softmax" if kernel is softmax else "online_softmax"
        print(f"{name:<15} {args.m} x {args.n}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
