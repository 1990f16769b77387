"""NHWC convolution as an implicit product: pixels by (kernel height, kernel width, channel)."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def convolution(
    data,
    kernel,
    S,
    D,
    P,
    block_M,
    block_N,
    block_K,
    num_stages,
    threads,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    N, H, W, C, KH, KW, F = T.const("N, H, W, C, KH, KW, F")
    OH = (H + 2 * P - D * (KH - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (KW - 1) - 1) // S + 1
    data: T.Tensor((N, H, W, C), dtype)
    kernel: T.Tensor((KH, KW, C, F), dtype)
    out = T.empty((N, OH, OW, F), dtype)

    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=threads) as (
        bx,
        by,
    ):
        data_shared = T.alloc_shared((block_M, block_K), dtype)
        kernel_shared = T.alloc_shared((block_K, block_N), dtype)
        out_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        out_shared = T.alloc_shared((block_M, block_N), dtype)

        kernel_flat = T.Tensor((KH * KW * C, F), dtype, kernel.data)
        out_flat = T.Tensor((N * OH * OW, F), dtype, out.data)

        T.clear(out_local)
        for k_iter in T.Pipelined(T.ceildiv(KH * KW * C, block_K), num_stages=num_stages):
            T.im2col(data, data_shared, by, k_iter, KH, S, D, P)
            T.copy(kernel_flat[k_iter * block_K, bx * block_N], kernel_shared)
            T.gemm(data_shared, kernel_shared, out_local)
        T.copy(out_local, out_shared)
        T.copy(out_shared, out_flat[by * block_M, bx * block_N])

    return out


@tilelang.jit
def convolution_gather(
    data,
    kernel,
    S,
    D,
    P,
    block_M,
    block_N,
    block_K,
    num_stages,
    threads,
    dtype=T.float16,
    accum_dtype=T.float32,
):
    """The same with the window gathered by hand, as on a target without the instruction."""
    N, H, W, C, KH, KW, F = T.const("N, H, W, C, KH, KW, F")
    OH = (H + 2 * P - D * (KH - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (KW - 1) - 1) // S + 1
    data: T.Tensor((N, H, W, C), dtype)
    kernel: T.Tensor((KH, KW, C, F), dtype)
    out = T.empty((N, OH, OW, F), dtype)

    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=threads) as (
        bx,
        by,
    ):
        data_shared = T.alloc_shared((block_M, block_K), dtype)
        kernel_shared = T.alloc_shared((block_K, block_N), dtype)
        out_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        kernel_flat = T.reshape(kernel, (KH * KW * C, F))
        out_flat = T.reshape(out, (N * OH * OW, F))

        T.clear(out_local)
        for k_iter in T.Pipelined(T.ceildiv(KH * KW * C, block_K), num_stages=num_stages):
            for i, j in T.Parallel(block_M, block_K):
                k = k_iter * block_K + j
                m = by * block_M + i
                access_h = m % (OH * OW) // OW * S + k // (KW * C) * D - P
                access_w = m % OW * S + k // C % KW * D - P
                in_bound = (
                    access_h >= 0
                    and access_w >= 0
                    and access_h < H
                    and access_w < W
                    and m < N * OH * OW
                    and k < KH * KW * C
                )
                data_shared[i, j] = T.if_then_else(
                    in_bound, data[m // (OH * OW), access_h, access_w, k % C], 0
                )
            T.copy(kernel_flat[k_iter * block_K, bx * block_N], kernel_shared)
            T.gemm(data_shared, kernel_shared, out_local)
        T.copy(out_local, out_flat[by * block_M, bx * block_N])

    return out


def inputs(rng, N, H, W, C, KH, KW, F, **_):
    data = rng.standard_normal((N, H, W, C)).astype(np.float16)
    return data, rng.standard_normal((KH, KW, C, F)).astype(np.float16)


def reference(data, kernel, S, D, P, **_):
    padded = np.pad(data, ((0, 0), (P, P), (P, P), (0, 0)))
    kh, kw = kernel.shape[:2]
    out_h = (padded.shape[1] - D * (kh - 1) - 1) // S + 1
    out_w = (padded.shape[2] - D * (kw - 1) - 1) // S + 1
    out = np.zeros(())
    for i in range(kh):
        for j in range(kw):
            window = padded[
                :,
                i * D : i * D + (out_h - 1) * S + 1 : S,
                j * D : j * D + (out_w - 1) * S + 1 : S,
            ]
            out = out + window @ kernel[i, j]
    return (out,)
