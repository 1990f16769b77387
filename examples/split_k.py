"""Split-K: a product with few output tiles and a long inner dimension.

    python examples/split_k.py --m 45 --n 70 --k 5003 --split 4

A 45 x 70 result is a handful of tiles: most of a machine would idle. Splitting K over a third grid
axis makes more blocks, which add their partial tiles into C atomically. C must start at zero, and
the order of the additions, hence the last digits, may differ from run to run.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5


@tilelang.jit
def matmul_split_k(A, B, C, split, block_M=32, block_N=32, block_K=32, num_stages=2):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C: T.Tensor((M, N), T.float32)
    # Whole K tiles per part, so that no part reads into the next one.
    tiles = T.ceildiv(K, block_K * split)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split, threads=128) as (bx, by, bz):
        A_tile = T.alloc_shared((block_M, block_K), T.float16)
        B_tile = T.alloc_shared((block_K, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(acc)
        for k in T.Pipelined(tiles, num_stages=num_stages):
            start = (bz * tiles + k) * block_K
            T.copy(A[by * block_M, start], A_tile)
            T.copy(B[start, bx * block_N], B_tile)
            T.gemm(A_tile, B_tile, acc)
        T.atomic_add(C[by * block_M, bx * block_N], acc)


def reference(A, B):
    return A.astype(np.float64) @ B.astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=45)
    parser.add_argument("--n", type=int, default=70)
    parser.add_argument("--k", type=int, default=5003)
    parser.add_argument("--split", type=int, default=4)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    A = rng.standard_normal((args.m, args.k)).astype(np.float16)
    B = rng.standard_normal((args.k, args.n)).astype(np.float16)
    C = np.zeros((args.m, args.n), np.float32)

    matmul_split_k(A, B, C, args.split)
    expected = reference(A, B)
    error = np.linalg.norm(C - expected) / np.linalg.norm(expected)
    print(f"split_k {args.m} x {args.n} x {args.k} in {args.split}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
