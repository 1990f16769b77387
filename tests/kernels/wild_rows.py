"""Rows: normalise, quantise, softmax, losses, rotary, embeddings, optimisers, dropout."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3, 4, 5])
def layer_norm(M, N, dtype="bfloat16", eps=1e-5, block_M=4):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        gamma: T.Tensor((N,), "float32"),
        beta: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), dtype),
        Mean: T.Tensor((M,), "float32"),
        Rstd: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x_shared = T.alloc_shared((block_M, N), dtype)
            x = T.alloc_fragment((block_M, N), "float32")
            centred = T.alloc_fragment((block_M, N), "float32")
            mean, var, rstd = [T.alloc_fragment((block_M,), "float32") for _ in "mvr"]
            T.copy(X[bx * block_M : (bx + 1) * block_M, :], x_shared)
            T.copy(x_shared, x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] /= N
            for i, j in T.Parallel(block_M, N):
                centred[i, j] = (x[i, j] - mean[i]) ** 2
            T.reduce_sum(centred, var, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(var[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = (x[i, j] - mean[i]) * rstd[i] * gamma[j] + beta[j]
            T.copy(x, Y[bx * block_M : (bx + 1) * block_M, :])
            T.copy(mean, Mean[bx * block_M])
            T.copy(rstd, Rstd[bx * block_M])

    return main


def inputs_norm(rng, *, M, N, **_):
    import torch

    x = torch.from_numpy(rng.standard_normal((M, N)).astype(np.float32) * 2 + 1).bfloat16()
    gamma, beta = (torch.from_numpy(rng.standard_normal(N).astype(np.float32)) for _ in range(2))
    return x, gamma, beta


def reference_norm(x, gamma, beta, *, eps=1e-5, **_):
    mean = x.mean(1)
    rstd = 1 / np.sqrt(x.var(1) + eps)
    return (x - mean[:, None]) * rstd[:, None] * gamma + beta, mean, rstd


@tilelang.jit
def layer_norm_backward(dY, X, gamma, mean, rstd, dgamma, dbeta, rows=8):
    """dX at once; the gradients of the weights are summed over blocks with atomics."""
    M, N = T.const("M, N")
    dY: T.Tensor((M, N), "float32")
    X: T.Tensor((M, N), "float32")
    gamma: T.Tensor((N,), "float32")
    mean: T.Tensor((M,), "float32")
    rstd: T.Tensor((M,), "float32")
    dgamma: T.Tensor((N,), "float32")
    dbeta: T.Tensor((N,), "float32")
    dX = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        xhat = T.alloc_fragment((rows, N), "float32")
        dy = T.alloc_fragment((rows, N), "float32")
        wdy = T.alloc_fragment((rows, N), "float32")
        product = T.alloc_fragment((rows, N), "float32")
        c1 = T.alloc_fragment((rows,), "float32")
        c2 = T.alloc_fragment((rows,), "float32")
        column = T.alloc_fragment((N,), "float32")
        row = bx * rows
        T.copy(dY[row, 0], dy)
        for i, j in T.Parallel(rows, N):
            xhat[i, j] = T.if_then_else(
                row + i < M, (X[row + i, j] - mean[row + i]) * rstd[row + i], 0
            )
            wdy[i, j] = dy[i, j] * gamma[j]
            product[i, j] = wdy[i, j] * xhat[i, j]
        T.reduce_sum(product, c1, dim=1)
        T.reduce_sum(wdy, c2, dim=1)
        for i, j in T.Parallel(rows, N):
            if row + i < M:
                dX[row + i, j] = (wdy[i, j] - (xhat[i, j] * c1[i] + c2[i]) / N) * rstd[row + i]
            product[i, j] = dy[i, j] * xhat[i, j]
        T.reduce_sum(product, column, dim=0)
        for j in T.Parallel(N):
            T.atomic_add(dgamma[j], column[j])
        T.reduce_sum(dy, column, dim=0)
        T.atomic_add(dbeta, column)
    return dX


def inputs_norm_backward(rng, *, M, N, **_):
    x = rng.standard_normal((M, N)).astype(np.float32)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    f = np.float32
    return (
        rng.standard_normal((M, N)).astype(f),
        x,
        rng.standard_normal(N).astype(f),
        mean.astype(f),
        rstd.astype(f),
        np.zeros(N, f),
        np.zeros(N, f),
    )


def reference_norm_backward(dy, x, gamma, mean, rstd, *_, **__):
    xhat = (x - mean[:, None]) * rstd[:, None]
    wdy = dy * gamma
    c1, c2 = (wdy * xhat).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
    return (wdy - xhat * c1 - c2) * rstd[:, None], (dy * xhat).sum(0), dy.sum(0)


@tilelang.jit
def rms_norm_quant(X, weight, bits=8, block=2):
    """RMS norm, then symmetric int8 with one scale per row."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float16)
    weight: T.Tensor((N,), T.float16)
    Q = T.empty((M, N), T.int8)
    S = T.empty((M,), T.float32)
    limit = (1 << (bits - 1)) - 1
    with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
        x = T.alloc_fragment((block, N), T.float32)
        sq = T.alloc_fragment((block, N), T.float32)
        total = T.alloc_fragment((block,), T.float32)
        amax = T.alloc_fragment((block,), T.float32)
        q = T.alloc_fragment((block, N), T.int8)
        T.copy(X[bx * block, 0], x)
        for i, j in T.Parallel(block, N):
            sq[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(sq, total, dim=1)
        for i, j in T.Parallel(block, N):
            x[i, j] = x[i, j] * T.rsqrt(total[i] / N + 1e-6) * weight[j]
        T.reduce_absmax(x, amax, dim=1)
        for i in T.Parallel(block):
            amax[i] = T.max(amax[i], 1e-4) / limit
            if bx * block + i < M:
                S[bx * block + i] = amax[i]
        for i, j in T.Parallel(block, N):
            q[i, j] = T.clamp(T.round(x[i, j] / amax[i]), -limit - 1, limit)
        T.copy(q, Q[bx * block, 0])
    return Q, S


def inputs_rms(rng, *, M, N, **_):
    return rng.standard_normal((M, N)).astype(np.float16), rng.uniform(0.5, 2, N).astype(np.float16)


def reference_rms(x, w, **_):
    y = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w
    s = np.abs(y).max(1) / 127
    return np.rint(y / s[:, None]), s


def nearly(outputs):
    """Rounding may differ at ties: quantised numbers are compared through their scale."""
    q, s = (np.asarray(x, np.float64) for x in outputs)
    return np.round(q * s[:, None] * 4) / 4, s


@tilelang.jit(out_idx=-1)
def online_softmax(M, N, BN=32, dtype="float16"):
    """One pass over tiles of columns for maximum and sum, a second that writes."""
    NN = tilelang.cdiv(N, BN)
    scale = 1.44269504

    @T.prim_func
    def main(X: T.Tensor([M, N], dtype), Y: T.Tensor([M, N], dtype)):
        with T.Kernel(M, threads=128) as i_m:
            x = T.alloc_fragment([BN], dtype)
            y = T.alloc_fragment([BN], dtype)
            lse = T.alloc_fragment([1], "float")
            max_x = T.alloc_fragment([1], dtype)
            exp_x = T.alloc_fragment([BN], "float")
            sum_exp_x = T.alloc_fragment([1], "float")
            T.fill(lse, -T.infinity("float"))
            for i_n in T.Pipelined(0, NN):
                for j in T.Parallel(BN):
                    x[j] = T.if_then_else(
                        i_n * BN + j < N, X[i_m, i_n * BN + j], -T.infinity(dtype)
                    )
                T.reduce_max(x, max_x, dim=0, clear=True)
                for j in T.Parallel(BN):
                    exp_x[j] = T.exp2(x[j] * scale - max_x[0] * scale)
                T.reduce_sum(exp_x, sum_exp_x, dim=0, clear=True)
                lse[0] = max_x[0] * scale + T.log2(T.exp2(lse[0] - max_x[0] * scale) + sum_exp_x[0])
            for i_n in T.Pipelined(0, NN):
                T.copy(X[i_m, i_n * BN : (i_n + 1) * BN], x)
                for j in T.Parallel(BN):
                    y[j] = T.exp2(x[j] * scale - lse[0])
                T.copy(y, Y[i_m, i_n * BN : (i_n + 1) * BN])

    return main


def inputs_row(rng, *, M, N, **_):
    return ((rng.standard_normal((M, N)) * 3).astype(np.float16),)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def reference_softmax(x, **_):
    return (softmax(x),)


@tilelang.jit
def softmax_backward(Y, dY, block=4):
    M, N = T.const("M, N")
    Y: T.Tensor((M, N), T.float32)
    dY: T.Tensor((M, N), T.float32)
    dX = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        y = T.alloc_shared((block, N), T.float32)
        dy = T.alloc_shared((block, N), T.float32)
        acc = T.alloc_reducer((block,), T.float32, op="sum", replication="all")
        rows = slice(bx * block, (bx + 1) * block)
        T.copy(Y[rows, :], y)
        T.copy(dY[rows, :], dy)
        T.clear(acc)
        for i, j in T.Parallel(block, N):
            acc[i] += y[i, j] * dy[i, j]
        T.finalize_reducer(acc)
        for i, j in T.Parallel(block, N):
            y[i, j] = y[i, j] * (dy[i, j] - acc[i])
        T.copy(y, dX[rows, :])
    return dX


def inputs_softmax_backward(rng, *, M, N, **_):
    return (
        softmax(rng.standard_normal((M, N))).astype(np.float32),
        rng.standard_normal((M, N)).astype(np.float32),
    )


def reference_softmax_backward(y, dy, **_):
    return (y * (dy - (y * dy).sum(1, keepdims=True)),)
