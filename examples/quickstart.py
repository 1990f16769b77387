"""Quickstart: relu(A @ B) as a tile kernel, checked against float64 and timed.

    python examples/quickstart.py
    python examples/quickstart.py --m 2048 --n 2048 --k 2048 --block-m 128

Read ``matmul_relu`` first: it is the whole kernel. Arrays in, arrays out; NumPy arrays run on the
CPU, PyTorch tensors on the device that holds them.
"""

import argparse
import sys
import time

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5  # relative Frobenius error, float32 sums against float64


@tilelang.jit
def matmul_relu(A, B, block_M=64, block_N=64, block_K=32, num_stages=2):
    # Sizes are read off the arrays; annotations say what the arguments must be.
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float32)
    B: T.Tensor((K, N), T.float32)
    C = T.empty((M, N), T.float32)

    # One block per output tile. Ragged edges need no care: reads past the end give 0,
    # writes past the end are dropped.
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_tile = T.alloc_shared((block_M, block_K), T.float32)
        B_tile = T.alloc_shared((block_K, block_N), T.float32)
        C_tile = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(C_tile)
        # On a GPU the copies of later tiles overlap the product of this one.
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_tile)
            T.copy(B[k * block_K, bx * block_N], B_tile)
            T.gemm(A_tile, B_tile, C_tile)

        # The result is still in registers: the activation costs no trip to memory.
        for i, j in T.Parallel(block_M, block_N):
            C_tile[i, j] = T.max(C_tile[i, j], 0)
        T.copy(C_tile, C[by * block_M, bx * block_N])

    return C


def reference(A, B):
    return np.maximum(A.astype(np.float64) @ B.astype(np.float64), 0)


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for size in "mnk":
        parser.add_argument(f"--{size}", type=int, default=1024, help="default: %(default)s")
    for tile, default in (("m", 64), ("n", 64), ("k", 32)):
        parser.add_argument(
            f"--block-{tile}", type=int, default=default, help="default: %(default)s"
        )
    parser.add_argument("--repeat", type=int, default=5, help="timed runs; the best one counts")
    args = parser.parse_args()
    blocks = {"block_M": args.block_m, "block_N": args.block_n, "block_K": args.block_k}

    small_error, _ = measure(101, 203, 77, blocks, repeat=1)
    print(f"odd sizes 101 x 203 x 77      relative error {small_error:.1e}")
    error, seconds = measure(args.m, args.n, args.k, blocks, args.repeat)
    gflops = 2 * args.m * args.n * args.k / seconds / 1e9
    sizes = f"{args.m} x {args.n} x {args.k}"
    print(f"{sizes:<29} relative error {error:.1e}")
    print(f"{'':<29} {seconds * 1e3:.2f} ms, {gflops:.1f} GFLOP/s")

    if max(error, small_error) > TOLERANCE:
        print(f"WRONG: the error is above {TOLERANCE:.0e}")
        return 1
    print("\nright. What to try next:")
    print("  python examples/quickstart.py --block-m 128 --block-n 32    other tiles, other speed")
    print("  tilelang trace examples/quickstart.py                       what each pass did to it")
    print("  tilelang compile examples/quickstart.py --emit layouts      where each element lives")
    print("  python examples/flash_attention.py                          a real fused kernel")
    return 0


def measure(m, n, k, blocks, repeat):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, k), dtype=np.float32)
    B = rng.standard_normal((k, n), dtype=np.float32)
    C = matmul_relu(A, B, **blocks)  # the first call compiles; later ones find the kernel again
    expected = reference(A, B)
    error = np.linalg.norm(C - expected) / np.linalg.norm(expected)
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        matmul_relu(A, B, **blocks)
        seconds.append(time.perf_counter() - start)
    return float(error), min(seconds)


if __name__ == "__main__":
    sys.exit(main())
