"""Products again: epilogues, strides, tables of pointers, sums by atomics, streams."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1], pass_configs={"tl.enable_fast_math": False})
def bias_gelu(M, N, K, block_M=32, block_N=64, block_K=32, how="tanh", trans_a=False, threads=128):
    """`gelu((x W + b) * scale)`, a scale per column, by either approximation."""
    a_shape, a_tile = ((K, M), (block_K, block_M)) if trans_a else ((M, K), (block_M, block_K))

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, "float16"),
        B: T.Tensor((N, K), "float16"),
        bias: T.Tensor((N,), "float16"),
        scale: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(a_tile, "float16")
            B_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            C_shared = T.alloc_shared((block_M, block_N), "float16")
            b_local = T.alloc_fragment((block_N,), "float32")
            s_local = T.alloc_fragment((block_N,), "float32")
            T.use_swizzle(panel_size=4, order="column")
            T.copy(bias[bx * block_N : (bx + 1) * block_N], b_local)
            T.copy(scale[bx * block_N : (bx + 1) * block_N], s_local)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                if trans_a:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_a, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                x = (C_local[i, j] + b_local[j]) * s_local[j]
                if how == "tanh":
                    C_local[i, j] = (
                        0.5 * x * (1 + T.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
                    )
                elif how == "sigmoid":
                    C_local[i, j] = x * T.sigmoid(1.702 * x)
                else:
                    C_local[i, j] = x
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


def inputs_bias_gelu(rng, *, M, N, K, trans_a=False, **_):
    f = np.float16
    return (
        (rng.standard_normal((K, M) if trans_a else (M, K)) / 4).astype(f),
        rng.standard_normal((N, K)).astype(f),
        rng.standard_normal(N).astype(f),
        rng.uniform(0.5, 2, N).astype(np.float32),
    )


def reference_bias_gelu(a, b, bias, scale, *, how="tanh", trans_a=False, **_):
    x = ((a.T if trans_a else a) @ b.T + bias) * scale
    if how == "tanh":
        return (0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),)
    return (x / (1 + np.exp(-1.702 * x)),)


@tilelang.jit
def bmm_strided(A, B, block=32, block_K=32, dtype=T.float16):
    """Batches and rows at strides of the caller's, read from the tensors themselves."""
    b, m, n, k = T.dynamic("b, m, n, k")
    sb, sm, tb, tk = T.dynamic("sb sm tb tk")
    A: T.StridedTensor((b, m, k), (sb, sm, 1), dtype)
    B: T.StridedTensor((b, k, n), (tb, tk, 1), dtype)
    C = T.empty((b, m, n), T.float32)
    with T.Kernel(T.ceildiv(n, block), T.ceildiv(m, block), b, threads=128) as (bn, bm, bb):
        a_s = T.alloc_shared((block, block_K), dtype)
        b_s = T.alloc_shared((block_K, block), dtype)
        acc = T.alloc_fragment((block, block), T.float32)
        T.clear(acc)
        for ko in T.Pipelined(T.ceildiv(k, block_K), num_stages=2):
            T.copy(A[bb, bm * block, ko * block_K], a_s)
            T.copy(B[bb, ko * block_K, bn * block], b_s)
            T.gemm(a_s, b_s, acc)
        T.copy(acc, C[bb, bm * block, bn * block])
    return C


def inputs_bmm_strided(rng, *, batch, M, N, K, **_):
    whole = rng.standard_normal((batch, M + 3, K + 8)).astype(np.float16)
    other = rng.standard_normal((batch, K, N + 5)).astype(np.float16)
    return whole[:, :M, :K], other[:, :, :N]


def reference_bmm_strided(a, b, **_):
    return (a @ b,)


@tilelang.jit
def grouped_pointers(a_ptrs, b_ptrs, c_ptrs, sizes, As, Bs, Cs, block=32, block_K=32):
    """Each group's matrices lie anywhere: tables of addresses, as grouped BLAS takes them."""
    groups, rows, K, N = T.const("groups rows K N")
    a_ptrs: T.Tensor((groups,), T.ptr)
    b_ptrs: T.Tensor((groups,), T.ptr)
    c_ptrs: T.Tensor((groups,), T.ptr)
    sizes: T.Tensor((groups,), T.int32)
    # What the addresses are in: only kept alive by the call.
    As: T.Tensor((groups, rows, K), T.float16)
    Bs: T.Tensor((groups, K, N), T.float16)
    Cs: T.Tensor((groups, rows, N), T.float32)
    with T.Kernel(groups, T.ceildiv(N, block), threads=128) as (g, bn):
        M = sizes[g]
        A = T.make_tensor(a_ptrs[g], (M, K), T.float16)
        B = T.make_tensor(b_ptrs[g], (K, N), T.float16)
        C = T.make_tensor(c_ptrs[g], (M, N), T.float32)
        a = T.alloc_shared((block, block_K), T.float16)
        b = T.alloc_shared((block_K, block), T.float16)
        c = T.alloc_fragment((block, block), T.float32)
        for bm in T.serial(T.ceildiv(M, block)):
            T.clear(c)
            for ko in T.serial(T.ceildiv(K, block_K)):
                T.copy(A[bm * block, ko * block_K], a)
                T.copy(B[ko * block_K, bn * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[bm * block, bn * block])


def inputs_pointers(rng, *, groups, rows, K, N, **_):
    a = rng.standard_normal((groups, rows, K)).astype(np.float16)
    b = rng.standard_normal((groups, K, N)).astype(np.float16)
    c = np.zeros((groups, rows, N), np.float32)
    tables = (np.array([x[g].ctypes.data for g in range(groups)]) for x in (a, b, c))
    return *tables, rng.integers(0, rows + 1, groups).astype(np.int32), a, b, c


def reference_pointers(_a, _b, _c, sizes, a, b, c, **_):
    for g, m in enumerate(sizes):
        c[g, :m] = a[g, :m] @ b[g]
    return (c,)


@tilelang.jit
def gemv_atomic(A, x, y, block_N=16, block_K=128, split=4, threads=64):
    """Every block sums a piece of K for some rows and adds it to the result."""
    N, K = T.const("N, K")
    A: T.Tensor((N, K), T.bfloat16)
    x: T.Tensor((K,), T.bfloat16)
    y: T.Tensor((N,), T.float32)
    piece = T.ceildiv(T.ceildiv(K, split), block_K) * block_K
    with T.Kernel(T.ceildiv(N, block_N), split, threads=threads) as (bn, bk):
        xs = T.alloc_shared((block_K,), T.bfloat16)
        prod = T.alloc_fragment((block_N, block_K), T.float32)
        part = T.alloc_fragment((block_N,), T.float32)
        T.clear(part)
        for k in T.serial(piece // block_K):
            first = bk * piece + k * block_K
            if first < K:
                T.copy(x[first : first + block_K], xs)
                for i, j in T.Parallel(block_N, block_K):
                    prod[i, j] = T.if_then_else(
                        bn * block_N + i < N and first + j < K,
                        T.cast(A[bn * block_N + i, first + j], T.float32)
                        * T.cast(xs[j], T.float32),
                        0.0,
                    )
                T.reduce_sum(prod, part, dim=1, clear=False)
        for i in T.Parallel(block_N):
            if bn * block_N + i < N:
                T.atomic_add(y[bn * block_N + i], part[i])


def inputs_gemv(rng, *, N, K, **_):
    import torch

    draw = lambda *s: torch.from_numpy(rng.standard_normal(s).astype(np.float32)).bfloat16()  # noqa: E731
    return draw(N, K), draw(K), torch.zeros(N)


def reference_gemv(a, x, y, **_):
    return (a @ x,)


def inputs_matmul(rng, *, M, N, K, **_):
    f = np.float16
    return rng.standard_normal((M, K)).astype(f), rng.standard_normal((K, N)).astype(f)


def reference_matmul(a, b, **_):
    return (a @ b,)


@tilelang.jit
def stream_k(A, B, workers=5, block=32, block_K=16):
    """Workers get equal runs of iterations; whole tiles are stored, parts are added."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float32)
    across = T.ceildiv(N, block)
    tiles = T.ceildiv(M, block) * across
    per_tile = T.ceildiv(K, block_K)
    share = T.ceildiv(tiles * per_tile, workers)
    with T.Kernel(T.ceildiv(M, block), across, threads=64) as (i, j):
        zero = T.alloc_fragment((block, block), T.float32)
        T.clear(zero)
        T.copy(zero, C[i * block, j * block])
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((block, block_K), T.float16)
        b = T.alloc_shared((block_K, block), T.float16)
        acc = T.alloc_fragment((block, block), T.float32)
        now = T.alloc_var(T.int32)
        now = w * share
        stop = T.min((w + 1) * share, tiles * per_tile)
        while now < stop:
            tile = now // per_tile
            end = T.min((tile + 1) * per_tile, stop)
            m, n = tile // across * block, tile % across * block
            T.clear(acc)
            for it in T.Pipelined(now, end, num_stages=2):
                k = it - tile * per_tile
                T.copy(A[m, k * block_K], a)
                T.copy(B[k * block_K, n], b)
                T.gemm(a, b, acc)
            if now == tile * per_tile and end == (tile + 1) * per_tile:
                T.copy(acc, C[m, n])
            else:
                T.atomic_add(C[m : m + block, n : n + block], acc)
            now = end
    return C


@tilelang.jit(out_idx=[2])
def persistent_split(M, N, K, sms=3, block=32, block_K=32, dtype="float16"):
    """Resident blocks walk over tiles and pieces of K with a stride; the last piece is the rest."""
    tiles_m, tiles_n = tilelang.cdiv(M, block), tilelang.cdiv(N, block)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(sms, threads=128) as cta:
            a = T.alloc_shared((block, block_K), dtype)
            b = T.alloc_shared((block_K, block), dtype)
            acc = T.alloc_fragment((block, block), "float32")
            out = T.alloc_shared((block, block), dtype)
            for wave in T.serial(T.ceildiv(tiles_m * tiles_n, sms)):
                tile = wave * sms + cta
                if tile >= tiles_m * tiles_n:
                    break
                m = tile // tiles_n
                n = T.if_then_else(m % 2 == 0, tile % tiles_n, tiles_n - 1 - tile % tiles_n)
                T.clear(acc)
                for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(A[m * block, ko * block_K], a)
                    T.copy(B[ko * block_K, n * block], b)
                    T.gemm(a, b, acc)
                T.copy(acc, out)
                T.copy(out, C[m * block, n * block])

    return main


@tilelang.jit
def gemm_argmin(X, codes, block_M=32, block_N=32, D=48):
    """The nearest code of a codebook: products, norms, and a running smallest with its index."""
    M, N, dim = T.const("M, N, dim")
    X: T.Tensor((M, dim), T.float16)
    codes: T.Tensor((N, dim), T.float16)
    index = T.empty((M,), T.int32)
    distance = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x = T.alloc_shared((block_M, D), T.float16)
        c = T.alloc_shared((block_N, D), T.float16)
        dots = T.alloc_fragment((block_M, block_N), T.float32)
        squares = T.alloc_fragment((block_N, D), T.float32)
        norms = T.alloc_fragment((block_N,), T.float32)
        places = T.alloc_fragment((block_M, block_N), T.int32)
        near = T.alloc_fragment((block_M,), T.float32)
        best = T.alloc_fragment((block_M,), T.float32)
        at = T.alloc_fragment((block_M,), T.int32)
        best_at = T.alloc_fragment((block_M,), T.int32)
        T.copy(X[bx * block_M, 0], x)
        T.fill(best, T.infinity(T.float32))
        T.fill(best_at, -1)
        for n in T.Pipelined(T.ceildiv(N, block_N), num_stages=1):
            T.copy(codes[n * block_N, 0], c)
            T.gemm(x, c, dots, transpose_B=True, clear_accum=True)
            for i, d in T.Parallel(block_N, D):
                squares[i, d] = T.cast(c[i, d], T.float32) * T.cast(c[i, d], T.float32)
            T.reduce_sum(squares, norms, dim=1)
            for i, j in T.Parallel(block_M, block_N):
                dots[i, j] = T.if_then_else(
                    n * block_N + j < N, norms[j] - 2 * dots[i, j], T.infinity(T.float32)
                )
            T.reduce_min(dots, near, dim=1)
            for i, j in T.Parallel(block_M, block_N):
                places[i, j] = T.if_then_else(
                    dots[i, j] == near[i], n * block_N + j, T.max_value(T.int32)
                )
            T.reduce_min(places, at, dim=1)
            for i in T.Parallel(block_M):
                if near[i] < best[i]:
                    best[i] = near[i]
                    best_at[i] = at[i]
        T.copy(best, distance[bx * block_M])
        T.copy(best_at, index[bx * block_M])
    return index, distance


def inputs_argmin(rng, *, M, N, dim, **_):
    f = np.float16
    return rng.integers(-4, 5, (M, dim)).astype(f), rng.integers(-4, 5, (N, dim)).astype(f)


def reference_argmin(x, codes, **_):
    d = (codes * codes).sum(1) - 2 * x @ codes.T
    return d.argmin(1), d.min(1)
