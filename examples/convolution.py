"""NHWC convolution as a matrix product that is never written out ("implicit GEMM").

    python examples/convolution.py --height 19 --width 23 --stride 2

Output pixels are the rows, output channels the columns, and the inner dimension runs over
(kernel row, kernel column, input channel). ``T.im2col`` gathers one tile of that virtual matrix.
"""

import argparse
import sys

import numpy as np

import tilelang
import tilelang.language as T

TOLERANCE = 1e-3


# tilelang: set N=2, H=19, W=23, C=13, KH=3, KW=3, F=37
@tilelang.jit
def convolution(
    data, weight, stride=1, dilation=1, padding=1, block_M=64, block_N=32, block_K=32, num_stages=2
):
    N, H, W, C, KH, KW, F = T.const("N, H, W, C, KH, KW, F")
    data: T.Tensor((N, H, W, C), T.float16)
    weight: T.Tensor((KH, KW, C, F), T.float16)
    OH = (H + 2 * padding - dilation * (KH - 1) - 1) // stride + 1
    OW = (W + 2 * padding - dilation * (KW - 1) - 1) // stride + 1
    out = T.empty((N, OH, OW, F), T.float16)

    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (bx, by):
        data_tile = T.alloc_shared((block_M, block_K), T.float16)
        weight_tile = T.alloc_shared((block_K, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)

        # The same memory under a matrix shape: no data moves.
        weight_matrix = T.reshape(weight, (KH * KW * C, F))
        out_matrix = T.reshape(out, (N * OH * OW, F))

        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(KH * KW * C, block_K), num_stages=num_stages):
            T.im2col(data, data_tile, by, k, KH, stride, dilation, padding)
            T.copy(weight_matrix[k * block_K, bx * block_N], weight_tile)
            T.gemm(data_tile, weight_tile, acc)
        T.copy(acc, out_matrix[by * block_M, bx * block_N])

    return out


def reference(data, weight, stride=1, dilation=1, padding=1):
    pad = (padding, padding)
    data = np.pad(data.astype(np.float64), ((0, 0), pad, pad, (0, 0)))
    weight = weight.astype(np.float64)
    kh, kw = weight.shape[:2]
    height = (data.shape[1] - dilation * (kh - 1) - 1) // stride + 1
    width = (data.shape[2] - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((len(data), height, width, weight.shape[3]))
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dilation, i * dilation + (height - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (width - 1) * stride + 1, stride)
            out += data[:, rows, columns] @ weight[i, j]
    return out


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--height", type=int, default=19)
    parser.add_argument("--width", type=int, default=23)
    parser.add_argument("--channels", type=int, default=13)
    parser.add_argument("--filters", type=int, default=37)
    parser.add_argument("--kernel", type=int, default=3)
    parser.add_argument("--stride", type=int, default=2)
    parser.add_argument("--dilation", type=int, default=1)
    parser.add_argument("--padding", type=int, default=1)
    args = parser.parse_args()
    geometry = {"stride": args.stride, "dilation": args.dilation, "padding": args.padding}

    rng = np.random.default_rng(0)
    data = rng.standard_normal((args.batch, args.height, args.width, args.channels))
    weight = rng.standard_normal((args.kernel, args.kernel, args.channels, args.filters))
    data, weight = data.astype(np.float16), weight.astype(np.float16)

    out = convolution(data, weight, **geometry).astype(np.float64)
    expected = reference(data, weight, **geometry)
    error = np.linalg.norm(out - expected) / np.linalg.norm(expected)
    print(f"convolution {data.shape} * {weight.shape}: relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
