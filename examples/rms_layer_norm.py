"""RMS norm and layer norm of rows, with learned weights.

    python examples/rms_layer_norm.py --m 203 --n 1001

Both keep their rows in registers between the statistics and the scaling, so that x is read from
memory once. Layer norm subtracts the mean before it squares: the short formula E[x^2] - E[x]^2
loses its digits when the mean is large.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5
EPSILON = 1e-6


@tilelang.jit
def rms_norm(x, weight, block_M=4):
    M, N = T.const("M, N")
    x: T.Tensor((M, N), T.float32)
    weight: T.Tensor((N,), T.float32)
    y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        rows = T.alloc_fragment((block_M, N), T.float32)
        squares = T.alloc_fragment((block_M, N), T.float32)
        scale = T.alloc_fragment((block_M,), T.float32)

        T.copy(x[bx * block_M, 0], rows)
        for i, j in T.Parallel(block_M, N):
            squares[i, j] = rows[i, j] * rows[i, j]
        T.reduce_sum(squares, scale, dim=1)
        for i in T.Parallel(block_M):
            scale[i] = T.rsqrt(scale[i] / N + EPSILON)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] *= scale[i] * weight[j]
        T.copy(rows, y[bx * block_M, 0])

    return y


@tilelang.jit
def layer_norm(x, weight, bias, block_M=4):
    M, N = T.const("M, N")
    x: T.Tensor((M, N), T.float32)
    weight: T.Tensor((N,), T.float32)
    bias: T.Tensor((N,), T.float32)
    y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        rows = T.alloc_fragment((block_M, N), T.float32)
        squares = T.alloc_fragment((block_M, N), T.float32)
        mean = T.alloc_fragment((block_M,), T.float32)
        scale = T.alloc_fragment((block_M,), T.float32)

        T.copy(x[bx * block_M, 0], rows)
        T.reduce_sum(rows, mean, dim=1)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] -= mean[i] / N
        for i, j in T.Parallel(block_M, N):
            squares[i, j] = rows[i, j] * rows[i, j]
        T.reduce_sum(squares, scale, dim=1)
        for i in T.Parallel(block_M):
            scale[i] = T.rsqrt(scale[i] / N + EPSILON)
        for i, j in T.Parallel(block_M, N):
            rows[i, j] = rows[i, j] * scale[i] * weight[j] + bias[j]
        T.copy(rows, y[bx * block_M, 0])

    return y


def rms_norm_reference(x, weight):
    x = x.astype(np.float64)
    return x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + EPSILON) * weight


def layer_norm_reference(x, weight, bias):
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return (
        centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPSILON) * weight + bias
    )


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=203)
    parser.add_argument("--n", type=int, default=1001)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x = 3 + rng.standard_normal((args.m, args.n), dtype=np.float32)
    weight = rng.standard_normal(args.n, dtype=np.float32)
    bias = rng.standard_normal(args.n, dtype=np.float32)

    errors = {
        "rms_norm": relative_error(rms_norm(x, weight), rms_norm_reference(x, weight)),
        "layer_norm": relative_error(
            layer_norm(x, weight, bias), layer_norm_reference(x, weight, bias)
        ),
    }
    for name, error in errors.items():
        print(f"{name:<11} {args.m} x {args.n}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if max(errors.values()) <= TOLERANCE else 1


def relative_error(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


if __name__ == "__main__":
    sys.exit(main())
