"""A product with 4-bit weights, two to a byte, scaled per group of 32 along K.

    python examples/dequant_gemm_int4.py --m 45 --n 203 --k 320

Weights travel from memory as bytes, a quarter of their float16 size, and become float16 only in
the tile that is multiplied: decoding is bound by reading weights, so this is where the time goes.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-3
GROUP = 32


# tilelang: set half_K=176, K_groups=11
@tilelang.jit
def matmul_int4(A, packed, scales, block_M=32, block_N=32, block_K=64, num_stages=2):
    """A (M, K) times W (N, K) transposed; byte (n, k) holds W[n, 2k] low and W[n, 2k+1] high."""
    M, N, K, half_K, K_groups = T.const("M, N, K, half_K, K_groups")
    A: T.Tensor((M, K), T.float16)
    packed: T.Tensor((N, half_K), T.uint8)
    scales: T.Tensor((N, K_groups), T.float16)
    C = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_tile = T.alloc_shared((block_M, block_K), T.float16)
        bytes_tile = T.alloc_shared((block_N, block_K // 2), T.uint8)
        W_tile = T.alloc_shared((block_N, block_K), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_tile)
            T.copy(packed[bx * block_N, k * (block_K // 2)], bytes_tile)
            for i, j in T.Parallel(block_N, block_K):
                scale = scales[bx * block_N + i, (k * block_K + j) // GROUP]
                W_tile[i, j] = T.cast(int4(bytes_tile[i, j // 2], j % 2), T.float16) * scale
            T.gemm(A_tile, W_tile, acc, transpose_B=True)
        T.copy(acc, C[by * block_M, bx * block_N])

    return C


def int4(byte, position):
    """The signed nibble at a position of a byte, sign-extended by shifting it up and down again."""
    nibble = (T.cast(byte, T.int32) >> (position * 4)) & 0xF
    return (nibble << 28) >> 28


def quantise(weights):
    """Symmetric 4-bit quantisation of (N, K) weights: packed bytes and one scale per group."""
    n, k = weights.shape
    groups = weights.reshape(n, k // GROUP, GROUP)
    scales = (np.abs(groups).max(axis=2) / 7).astype(np.float16)
    levels = np.clip(np.rint(groups / scales[:, :, None]), -8, 7).astype(np.int8).reshape(n, k)
    nibbles = levels.view(np.uint8) & 0xF
    return nibbles[:, ::2] | (nibbles[:, 1::2] << 4), scales


def reference(A, packed, scales):
    nibbles = np.stack([packed & 0xF, packed >> 4], axis=2).reshape(len(packed), -1)
    levels = np.where(nibbles < 8, nibbles, nibbles.astype(np.int8) - 16)
    weights = levels * np.repeat(scales.astype(np.float64), GROUP, axis=1)
    return A.astype(np.float64) @ weights.T


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=45)
    parser.add_argument("--n", type=int, default=203)
    parser.add_argument("--k", type=int, default=352, help=f"a multiple of {GROUP}")
    args = parser.parse_args()
    if args.k % GROUP:
        parser.error(f"--k must be a multiple of the scale group, {GROUP}")

    rng = np.random.default_rng(0)
    A = rng.standard_normal((args.m, args.k)).astype(np.float16)
    packed, scales = quantise(rng.standard_normal((args.n, args.k)))

    C = matmul_int4(A, packed, scales).astype(np.float64)
    expected = reference(A, packed, scales)
    error = np.linalg.norm(C - expected) / np.linalg.norm(expected)
    print(f"matmul_int4 {args.m} x {args.n} x {args.k}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
