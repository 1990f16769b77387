"""An elementwise kernel with broadcasting: gelu(x * scale + bias), a column and a row vector.

    python examples/elementwise_broadcast.py --m 1003 --n 777

``scale`` has one value per row, ``bias`` one per column. The loop is written once over logical
positions; which thread or vector lane takes which position is the compiler's business.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5


@tilelang.jit
def scaled_gelu(x, scale, bias, block_M=32, block_N=128):
    M, N = T.const("M, N")
    x: T.Tensor((M, N), T.float32)
    scale: T.Tensor((M, 1), T.float32)
    bias: T.Tensor((N,), T.float32)
    y = T.empty((M, N), T.float32)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        for i, j in T.Parallel(block_M, block_N):
            row = by * block_M + i
            column = bx * block_N + j
            value = x[row, column] * scale[row, 0] + bias[column]
            y[row, column] = gelu(value)

    return y


def gelu(value):
    # A plain Python function: it runs while the kernel is traced and leaves only its expression.
    inner = 0.7978845608 * (value + 0.044715 * value * value * value)
    return 0.5 * value * (1 + T.tanh(inner))


def reference(x, scale, bias):
    value = x.astype(np.float64) * scale + bias
    return 0.5 * value * (1 + np.tanh(0.7978845608 * (value + 0.044715 * value**3)))


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=1003)
    parser.add_argument("--n", type=int, default=777)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x = rng.standard_normal((args.m, args.n), dtype=np.float32)
    scale = rng.standard_normal((args.m, 1), dtype=np.float32)
    bias = rng.standard_normal(args.n, dtype=np.float32)

    y = scaled_gelu(x, scale, bias)
    expected = reference(x, scale, bias)
    error = np.linalg.norm(y - expected) / np.linalg.norm(expected)
    print(f"scaled_gelu {args.m} x {args.n}: relative error {error:.1e} (at most {TOLERANCE:.0e})")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
