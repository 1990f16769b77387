"""Windows: convolutions of one and two dimensions, depthwise, pooling, stencils."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def causal_conv1d(x, weight, bias, state, block_T=32, activation="silu"):
    """Depthwise over time with what came before, as state-space models want it."""
    B, D, L, W = T.const("B, D, L, W")
    x: T.Tensor((B, D, L), T.float16)
    weight: T.Tensor((D, W), T.float16)
    bias: T.Tensor((D,), T.float32)
    state: T.Tensor((B, D, W - 1), T.float16)
    out = T.empty((B, D, L), T.float16)
    with T.Kernel(T.ceildiv(L, block_T), D, B, threads=block_T) as (bt, d, b):
        for t in T.Parallel(block_T):
            pos = bt * block_T + t
            acc = T.alloc_var(T.float32)
            acc = bias[d]
            for w in T.unroll(W):
                at = pos + w - (W - 1)
                value = T.if_then_else(at >= 0, x[b, d, at], state[b, d, at + W - 1])
                acc += weight[d, w] * value
            if pos < L:
                out[b, d, pos] = acc * T.sigmoid(acc) if activation == "silu" else acc
    return out


def inputs_conv1d(rng, *, B, D, L, W, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    return draw(B, D, L), draw(D, W), draw(D).astype(np.float32), draw(B, D, W - 1)


def reference_conv1d(x, w, bias, state, **_):
    whole = np.concatenate([state, x], 2)
    windows = np.lib.stride_tricks.sliding_window_view(whole, w.shape[1], 2)
    y = np.einsum("bdlw,dw->bdl", windows, w) + bias[:, None]
    return (y / (1 + np.exp(-y)),)


def conv2d_explicit(
    N, H, W, C, F, K, S=1, P=1, block_M=32, block_N=32, block_K=32, dtype="float16"
):
    """The gather of im2col written out, in a pipeline; NHWC and filters of (F, K, K, C)."""
    OH, OW = (H + 2 * P - K) // S + 1, (W + 2 * P - K) // S + 1
    M, dtype = N * OH * OW, "float16"

    @T.prim_func
    def conv(
        data: T.Tensor((N, H, W, C), dtype),
        kernel: T.Tensor((F, K * K * C), dtype),
        bias: T.Tensor((F,), "float32"),
        out: T.Tensor((N * OH * OW, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (
            bx,
            by,
        ):
            tile = T.alloc_shared((block_M, block_K), dtype)
            weights = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            result = T.alloc_fragment((block_M, block_N), dtype)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] = bias[bx * block_N + j]
            for ko in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=2):
                for i, j in T.Parallel(block_M, block_K):
                    k = ko * block_K + j
                    m = by * block_M + i
                    n, oh, ow = m // (OH * OW), m // OW % OH, m % OW
                    ih = oh * S + k // (K * C) - P
                    iw = ow * S + k // C % K - P
                    inside = (ih >= 0) and (iw >= 0) and (ih < H) and (iw < W) and k < K * K * C
                    tile[i, j] = T.if_then_else(inside, data[n, ih, iw, k % C], 0)
                T.copy(kernel[bx * block_N, ko * block_K], weights)
                T.gemm(tile, weights, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                result[i, j] = T.max(acc[i, j], 0)
            T.copy(result, out[by * block_M, bx * block_N])

    return conv


def inputs_conv2d(rng, *, N, H, W, C, F, K, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    return draw(N, H, W, C), draw(F, K * K * C), draw(F).astype(np.float32)


def reference_conv2d(x, w, bias, *, N, C, F, K, S=1, P=1, **_):
    x = np.pad(x, ((0, 0), (P, P), (P, P), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), (1, 2))[:, ::S, ::S]
    y = np.einsum("nhwcij,fijc->nhwf", windows, w.reshape(F, K, K, C))
    return (np.maximum(y + bias, 0).reshape(-1, F),)


@tilelang.jit
def conv2d_im2col(data, weight, S=2, D=1, P=1, block_M=32, block_N=32, block_K=32):
    """`T.im2col` moves the tile; a stride of 2."""
    N, H, W, C, K, F = T.const("N, H, W, C, K, F")
    data: T.Tensor((N, H, W, C), T.float16)
    weight: T.Tensor((K, K, C, F), T.float16)
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    out = T.empty((N, OH, OW, F), T.float16)
    with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * OH * OW, block_M), threads=128) as (bx, by):
        a = T.alloc_shared((block_M, block_K), T.float16)
        b = T.alloc_shared((block_K, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        flat = T.reshape(weight, (K * K * C, F))
        rows = T.reshape(out, (N * OH * OW, F))
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=2):
            T.im2col(data, a, by, k, K, S, D, P)
            T.copy(flat[k * block_K, bx * block_N], b)
            T.gemm(a, b, acc)
        T.copy(acc, rows[by * block_M, bx * block_N])
    return out


def inputs_im2col(rng, *, N, H, W, C, K, F, **_):
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float16)  # noqa: E731
    return draw(N, H, W, C), draw(K, K, C, F)


def reference_im2col(x, w, *, S=2, P=1, **_):
    K = len(w)
    x = np.pad(x, ((0, 0), (P, P), (P, P), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), (1, 2))[:, ::S, ::S]
    return (np.einsum("nhwcij,ijcf->nhwf", windows, w),)


@tilelang.jit(out_idx=[2])
def depthwise2d(N, C, H, W, K=3, th=8, tw=16, dtype="float32"):
    """NCHW, a tile with its halo in shared memory."""
    R = K // 2

    @T.prim_func
    def main(
        X: T.Tensor((N, C, H, W), dtype),
        F: T.Tensor((C, K, K), dtype),
        Y: T.Tensor((N, C, H, W), dtype),
    ):
        with T.Kernel(T.ceildiv(W, tw), T.ceildiv(H, th), N * C, threads=(tw, th)) as (bx, by, bz):
            n, c = bz // C, bz % C
            halo = T.alloc_shared((th + K - 1, tw + K - 1), dtype)
            f = T.alloc_local((K, K), dtype)
            for i, j in T.Parallel(th + K - 1, tw + K - 1):
                y, x = by * th + i - R, bx * tw + j - R
                if y >= 0 and y < H and x >= 0 and x < W:
                    halo[i, j] = X[n, c, y, x]
                else:
                    halo[i, j] = 0.0
            for i, j in T.grid(K, K):
                f[i, j] = F[c, i, j]
            T.sync_threads()
            tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
            acc = T.alloc_var(dtype, 0.0)
            for i, j in T.grid(K, K):
                acc += halo[ty + i, tx + j] * f[i, j]
            if by * th + ty < H and bx * tw + tx < W:
                Y[n, c, by * th + ty, bx * tw + tx] = acc

    return main


def inputs_depthwise(rng, *, N, C, H, W, K=3, **_):
    f = np.float32
    return rng.standard_normal((N, C, H, W)).astype(f), rng.standard_normal((C, K, K)).astype(f)


def reference_depthwise(x, f, *, K=3, **_):
    r = K // 2
    x = np.pad(x, ((0, 0), (0, 0), (r, r), (r, r)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), (2, 3))
    return (np.einsum("nchwij,cij->nchw", windows, f),)


@tilelang.jit
def max_pool(X, K=3, S=2, block=8):
    """The largest of each window, and where in the image it stands."""
    N, H, W, C = T.const("N H W C")
    X: T.Tensor((N, H, W, C), "float16")
    OH, OW = (H - K) // S + 1, (W - K) // S + 1
    Y = T.empty((N, OH, OW, C), "float16")
    At = T.empty((N, OH, OW, C), "int32")
    with T.Kernel(N, OH, T.ceildiv(OW, block), threads=64) as (n, oh, bw):
        for i, c in T.Parallel(block, C):
            ow = bw * block + i
            best = T.alloc_var("float16", -T.infinity("float16"))
            at = T.alloc_var("int32", 0)
            for r, s in T.grid(K, K):
                h, w = oh * S + r, ow * S + s
                if X[n, h, w, c] > best:
                    best = X[n, h, w, c]
                    at = h * W + w
            if ow < OW:
                Y[n, oh, ow, c] = best
                At[n, oh, ow, c] = at
    return Y, At


def inputs_pool(rng, *, N, H, W, C, **_):
    return (rng.permutation(N * H * W * C).reshape(N, H, W, C).astype(np.float16),)


def reference_pool(x, *, K=3, S=2, **_):
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), (1, 2))[:, ::S, ::S]
    flat = windows.reshape(*windows.shape[:4], -1)
    best = flat.argmax(-1)
    oh, ow = np.indices(best.shape)[1:3]
    return flat.max(-1), (oh * S + best // K) * x.shape[2] + ow * S + best % K


def heat3d(steps=2, block=(4, 4, 8), dtype=T.float32):
    """A seven-point stencil in a volume of any size, some steps from one tensor to the other."""
    X, Y, Z = T.dynamic("X Y Z")
    bx_, by_, bz_ = block

    @T.macro
    def step(src, dst, alpha):
        with T.Kernel(
            T.ceildiv(Z, bz_), T.ceildiv(Y, by_), T.ceildiv(X, bx_), threads=bx_ * by_ * bz_
        ) as (bz, by, bx):
            for i, j, k in T.Parallel(bx_, by_, bz_):
                x, y, z = bx * bx_ + i, by * by_ + j, bz * bz_ + k
                if x < X and y < Y and z < Z:
                    edge = T.any(x == 0, y == 0, z == 0, x == X - 1, y == Y - 1, z == Z - 1)
                    if edge:
                        dst[x, y, z] = src[x, y, z]
                    else:
                        dst[x, y, z] = src[x, y, z] + alpha * (
                            src[x - 1, y, z] + src[x + 1, y, z] + src[x, y - 1, z]
                            + src[x, y + 1, z] + src[x, y, z - 1] + src[x, y, z + 1]
                            - 6.0 * src[x, y, z]
                        )  # fmt: skip

    @T.prim_func
    def main(A: T.Tensor((X, Y, Z), dtype), B: T.Tensor((X, Y, Z), dtype), alpha: T.float32):
        for s in list(range(steps)):
            if s % 2 == 0:
                step(A, B, alpha)
            else:
                step(B, A, alpha)

    return main


def inputs_heat(rng, *, X, Y, Z, **_):
    return rng.standard_normal((X, Y, Z)).astype(np.float32), np.zeros((X, Y, Z), np.float32), 0.1


def reference_heat(a, b, alpha, *, steps=2, **_):
    inner = (slice(1, -1),) * 3
    pair = [a, b]
    for s in range(steps):
        src, dst = pair if s % 2 == 0 else pair[::-1]
        dst[:] = src
        near = sum(np.roll(src, d, axis) for d in (1, -1) for axis in range(3))
        dst[inner] = (src + alpha * (near - 6 * src))[inner]
    return a, b
