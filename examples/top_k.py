"""The k largest of each row, in order, with their positions: the router of a mixture of experts.

    python examples/top_k.py --m 301 --experts 77 --k 6

For a small k the plainest way is the fastest: take the maximum, strike it out, repeat. Of equal
values the one at the lowest position comes first.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T


# tilelang: set N=77
@tilelang.jit
def top_k(logits, k, block_M=16):
    M, N = T.const("M, N")
    logits: T.Tensor((M, N), T.float32)
    values = T.empty((M, k), T.float32)
    indices = T.empty((M, k), T.int32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        rows = T.alloc_fragment((block_M, N), T.float32)
        positions = T.alloc_fragment((block_M, N), T.int32)
        best = T.alloc_fragment((block_M,), T.float32)
        place = T.alloc_fragment((block_M,), T.int32)

        T.copy(logits[bx * block_M, 0], rows)
        for round in T.serial(k):
            T.reduce_max(rows, best, dim=1)
            # The lowest position that holds the maximum; every other one loses to N.
            for i, j in T.Parallel(block_M, N):
                positions[i, j] = T.if_then_else(rows[i, j] == best[i], j, N)
            T.reduce_min(positions, place, dim=1)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] = T.if_then_else(j == place[i], -T.infinity(T.float32), rows[i, j])
            for i in T.Parallel(block_M):
                values[bx * block_M + i, round] = best[i]
                indices[bx * block_M + i, round] = place[i]

    return values, indices


def reference(logits, k):
    indices = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(logits, indices, axis=1), indices


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=301)
    parser.add_argument("--experts", type=int, default=77)
    parser.add_argument("--k", type=int, default=6)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    logits = rng.standard_normal((args.m, args.experts), dtype=np.float32).round(2)  # with ties

    values, indices = top_k(logits, args.k)
    expected_values, expected_indices = reference(logits, args.k)
    wrong = int((values != expected_values).sum() + (indices != expected_indices).sum())
    print(f"top_k {args.k} of {args.m} x {args.experts}: {wrong} wrong of {2 * indices.size}")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
