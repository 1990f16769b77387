"""Grouped GEMM: rows sorted by expert, each group times the weights of its expert.

    python examples/grouped_gemm.py --group-sizes 17,0,64,5 --n 203 --k 77

One launch serves all groups. A block finds its group by walking the group offsets; since tiles are
counted per group, no tile ever holds rows of two groups.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-3


# tilelang: set rows=217, groups=5, bounds=6, total_tiles=9
@tilelang.jit
def grouped_gemm(A, W, offsets, total_tiles, block_M=32, block_N=64, block_K=32, num_stages=2):
    """Rows offsets[g] .. offsets[g + 1] of A belong to group g, and are multiplied by W[g]."""
    rows, N, K, groups, bounds = T.const("rows, N, K, groups, bounds")
    A: T.Tensor((rows, K), T.float16)
    W: T.Tensor((groups, K, N), T.float16)
    offsets: T.Tensor((bounds,), T.int32)
    C = T.empty((rows, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), total_tiles, threads=128) as (bx, tile):
        A_tile = T.alloc_shared((block_M, block_K), T.float16)
        W_tile = T.alloc_shared((block_K, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)

        group = T.alloc_var(T.int32, 0)
        row = T.alloc_var(T.int32, 0)
        first_tile = T.alloc_var(T.int32, 0)
        for g in T.serial(groups):
            tiles = T.ceildiv(offsets[g + 1] - offsets[g], block_M)
            if tile >= first_tile and tile < first_tile + tiles:
                group = g
                row = offsets[g] + (tile - first_tile) * block_M
            first_tile += tiles
        end = offsets[group + 1]

        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            # The last tile of a group reads rows of the next one too; they are not stored.
            T.copy(A[row : row + block_M, k * block_K : (k + 1) * block_K], A_tile)
            T.copy(
                W[group, k * block_K : (k + 1) * block_K, bx * block_N : (bx + 1) * block_N],
                W_tile,
            )
            T.gemm(A_tile, W_tile, acc)
        for i, j in T.Parallel(block_M, block_N):
            if row + i < end:
                C[row + i, bx * block_N + j] = acc[i, j]

    return C


def reference(A, W, offsets):
    A, W = A.astype(np.float64), W.astype(np.float64)
    return np.concatenate([A[offsets[g] : offsets[g + 1]] @ W[g] for g in range(len(W))])


GROUP_SIZES = (17, 0, 64, 5, 131)


def inputs():
    """What `tilelang run` cannot make up: offsets that end at the number of rows."""
    return {"offsets": offsets_of(GROUP_SIZES)}


def offsets_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--group-sizes", default=",".join(map(str, GROUP_SIZES)))
    parser.add_argument("--n", type=int, default=203)
    parser.add_argument("--k", type=int, default=77)
    parser.add_argument("--block-m", type=int, default=32)
    args = parser.parse_args()
    sizes = [int(size) for size in args.group_sizes.split(",")]

    rng = np.random.default_rng(0)
    offsets = offsets_of(sizes)
    A = rng.standard_normal((sum(sizes), args.k)).astype(np.float16)
    W = rng.standard_normal((len(sizes), args.k, args.n)).astype(np.float16)
    total_tiles = sum(-(-size // args.block_m) for size in sizes)

    C = grouped_gemm(A, W, offsets, total_tiles, block_M=args.block_m).astype(np.float64)
    expected = reference(A, W, offsets)
    error = np.linalg.norm(C - expected) / np.linalg.norm(expected)
    print(f"grouped_gemm rows {sizes}, {args.n} x {args.k}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
