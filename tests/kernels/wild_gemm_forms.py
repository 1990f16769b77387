"""Products as they are put together: configurations, macros, split sums, GEMV, LoRA, tuning."""

import itertools
from dataclasses import dataclass

import numpy as np

import tilelang
import tilelang.language as T


def inputs_matmul(rng, *, M, N, K, **_):
    return (
        rng.standard_normal((M, K)).astype(np.float16),
        rng.standard_normal((K, N)).astype(np.float16),
    )


def reference_matmul(a, b, **_):
    return (a @ b,)


@dataclass
class GemmConfig:
    block_M: int = 32
    block_N: int = 64
    block_K: int = 32
    num_stages: int = 2
    threads: int = 128
    split_k: int = 3

    @property
    def tile(self):
        return self.block_M, self.block_N


CONFIG = GemmConfig()


@tilelang.jit(out_idx=[2])
def splitk_two_kernels(M, N, K, config=CONFIG):
    """Partial sums in a workspace of the launch, then a second kernel adds them up."""
    cfg = config
    chunk = tilelang.cdiv(K, cfg.split_k)
    chunk = tilelang.cdiv(chunk, cfg.block_K) * cfg.block_K

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
        Partial: T.Tensor((cfg.split_k, M, N), "float32"),
    ):
        with T.Kernel(
            T.ceildiv(N, cfg.block_N), T.ceildiv(M, cfg.block_M), cfg.split_k, threads=cfg.threads
        ) as (bx, by, bz):
            A_shared = T.alloc_shared((cfg.block_M, cfg.block_K), "float16")
            B_shared = T.alloc_shared((cfg.block_K, cfg.block_N), "float16")
            C_local = T.alloc_fragment(cfg.tile, "float32")
            T.clear(C_local)
            for k in T.Pipelined(chunk // cfg.block_K, num_stages=cfg.num_stages):
                T.copy(A[by * cfg.block_M, bz * chunk + k * cfg.block_K], A_shared)
                T.copy(B[bz * chunk + k * cfg.block_K, bx * cfg.block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, Partial[bz, by * cfg.block_M, bx * cfg.block_N])

        with T.Kernel(T.ceildiv(N, 64), M, threads=64) as (bx, row):
            total = T.alloc_fragment((64,), "float32")
            part = T.alloc_fragment((64,), "float32")
            T.clear(total)
            for s in T.serial(cfg.split_k):
                T.copy(Partial[s, row, bx * 64], part)
                for j in T.Parallel(64):
                    total[j] += part[j]
            T.copy(total, C[row, bx * 64])

    return main


def inputs_splitk(rng, *, M, N, K, split=3, **_):
    a, b = inputs_matmul(rng, M=M, N=N, K=K)
    return a, b, np.zeros((split, M, N), np.float32)


def reference_splitk(a, b, _partial, **_):
    return (a @ b,)


def make_epilogue(alpha, beta):
    @T.macro
    def epilogue(acc: T.FragmentBuffer, C, D, m0, n0):
        for i, j in T.Parallel(acc.shape[0], acc.shape[1]):
            D[m0 + i, n0 + j] = alpha * acc[i, j] + beta * C[m0 + i, n0 + j]

    return epilogue


@T.macro
def k_loop(A, B, acc, m0, n0, K, block, stages):
    a = T.alloc_shared(block[::2], A.dtype)
    b = T.alloc_shared((block[2], block[1]), B.dtype)
    T.clear(acc)
    for k in T.Pipelined(T.ceildiv(K, block[2]), num_stages=stages):
        T.copy(A[m0, k * block[2]], a)
        T.copy(B[k * block[2], n0], b)
        T.gemm(a, b, acc)


def blas_gemm(alpha=1.5, beta=-0.5, block=(32, 32, 16), dtype=T.float16):
    """`D = alpha A B + beta C` of macros, for any sizes known when it runs."""
    M, N, K = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")
    epilogue = make_epilogue(alpha, beta)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), T.float32),
        D: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, block[1]), T.ceildiv(M, block[0]), threads=128) as (bx, by):
            acc = T.alloc_fragment(block[:2], T.float32)
            k_loop(A, B, acc, by * block[0], bx * block[1], K, block, stages=2)
            epilogue(acc, C, D, by * block[0], bx * block[1])

    return gemm


def inputs_blas(rng, *, M, N, K, **_):
    a, b = inputs_matmul(rng, M=M, N=N, K=K)
    return a, b, rng.standard_normal((M, N)).astype(np.float32), np.zeros((M, N), np.float32)


def reference_blas(a, b, c, _d, *, alpha=1.5, beta=-0.5, **_):
    return (alpha * (a @ b) + beta * c,)


@tilelang.jit(out_idx=-1)
def int8_per_channel(M, N, K, block_M=32, block_N=32, block_K=64):
    @T.prim_func
    def w8a8(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K), "int8"),
        scale_a: T.Tensor((M,), "float32"),
        scale_b: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "int8")
            B_shared = T.alloc_shared((block_N, block_K), "int8")
            C_local = T.alloc_fragment((block_M, block_N), "int32")
            out = T.alloc_fragment((block_M, block_N), "float16")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, False, True)
            for i, j in T.Parallel(block_M, block_N):
                out[i, j] = T.cast(
                    T.cast(C_local[i, j], "float32")
                    * scale_a[by * block_M + i]
                    * scale_b[bx * block_N + j],
                    "float16",
                )
            T.copy(out, C[by * block_M, bx * block_N])

    return w8a8


def inputs_w8a8(rng, *, M, N, K, **_):
    return (
        rng.integers(-128, 128, (M, K)).astype(np.int8),
        rng.integers(-128, 128, (N, K)).astype(np.int8),
        rng.uniform(0.001, 0.01, M).astype(np.float32),
        rng.uniform(0.001, 0.01, N).astype(np.float32),
    )


def reference_w8a8(a, b, scale_a, scale_b, **_):
    return ((a.astype(np.float64) @ b.T.astype(np.float64)) * scale_a[:, None] * scale_b,)


@tilelang.jit
def gemv_splitk(A, B, block_N: int = 8, reduce_threads: int = 16, vec: int = 4):
    """One output per row of threads: each sums its part, then the row of threads adds up."""
    N, K = T.const("N, K")
    A: T.Tensor((K,), T.float16)
    B: T.Tensor((N, K), T.float16)
    C = T.empty((N,), T.float16)
    block_K = reduce_threads * vec

    with T.Kernel(T.ceildiv(N, block_N), threads=(block_N, reduce_threads)) as bn:
        tn = T.get_thread_binding(0)
        tk = T.get_thread_binding(1)
        A_local = T.alloc_local((vec,), T.float16)
        B_local = T.alloc_local((vec,), T.float16)
        C_accum = T.alloc_local((1,), T.float32)
        C_reduced = T.alloc_local((1,), T.float32)
        T.clear(C_accum)
        for bk in T.serial(T.ceildiv(K, block_K)):
            for k in T.vectorized(vec):
                A_local[k] = A[bk * block_K + tk * vec + k]
                B_local[k] = B[bn * block_N + tn, bk * block_K + tk * vec + k]
            for k in T.serial(vec):
                C_accum[0] += A_local[k].astype(T.float32) * B_local[k].astype(T.float32)
        with T.attr(
            T.comm_reducer(lambda x, y: x + y, [T.Cast(T.float32, 0)]),
            "reduce_scope",
            T.reinterpret(T.uint64(0), dtype="handle"),
        ):
            T.evaluate(
                T.tvm_thread_allreduce(
                    T.uint32(1), C_accum[0], True, C_reduced[0], tk, dtype="handle"
                )
            )
        C[bn * block_N + tn] = C_reduced[0]
    return C


def inputs_gemv(rng, *, N, K, **_):
    return rng.standard_normal(K).astype(np.float16), rng.standard_normal((N, K)).astype(np.float16)


def reference_gemv(a, b, **_):
    return (b @ a,)


@tilelang.jit
def gemv_shared(A, B, block_N=16, block_K=32):
    N, K = T.const("N, K")
    A: T.Tensor((K,), "float16")
    B: T.Tensor((N, K), "float16")
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block_N), threads=block_N) as bn:
        tn = T.get_thread_binding(0)
        A_shared = T.alloc_shared((block_K,), "float16")
        B_shared = T.alloc_shared((block_N, block_K), "float16")
        C_reg = T.alloc_local((1,), "float32")
        T.clear(C_reg)
        for bk in T.serial(T.ceildiv(K, block_K)):
            for tk in T.serial(block_K):
                A_shared[tk] = A[bk * block_K + tk]
                B_shared[tn, tk] = B[bn * block_N + tn, bk * block_K + tk]
            for tk in T.serial(block_K):
                C_reg[0] += A_shared[tk].astype("float32") * B_shared[tn, tk].astype("float32")
        C[bn * block_N + tn] = C_reg[0]
    return C


@tilelang.jit
def lora(X, W, A, B, block_M=32, block_N=32, block_K=32, scaling=0.5):
    """`X W + scaling (X A) B`; the small product goes back in as an operand in registers."""
    M, N, K, R = T.const("M, N, K, R")
    X: T.Tensor((M, K), T.float16)
    W: T.Tensor((K, N), T.float16)
    A: T.Tensor((K, R), T.float16)
    B: T.Tensor((R, N), T.float16)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=64) as (bx, by):
        X_s = T.alloc_shared((block_M, block_K), T.float16)
        W_s = T.alloc_shared((block_K, block_N), T.float16)
        A_s = T.alloc_shared((block_K, R), T.float16)
        B_s = T.alloc_shared((R, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        low = T.alloc_fragment((block_M, R), T.float32)
        low_cast = T.alloc_fragment((block_M, R), T.float16)
        T.clear(acc)
        T.clear(low)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(X[by * block_M, k * block_K], X_s)
            T.copy(W[k * block_K, bx * block_N], W_s)
            T.copy(A[k * block_K, 0], A_s)
            T.gemm(X_s, W_s, acc, policy=T.GemmWarpPolicy.FullRow)
            T.gemm(X_s, A_s, low, policy=T.GemmWarpPolicy.FullRow)
        T.copy(B[0, bx * block_N], B_s)
        for i, r in T.Parallel(block_M, R):
            low_cast[i, r] = low[i, r] * scaling
        T.gemm(low_cast, B_s, acc, policy=T.GemmWarpPolicy.FullRow)
        T.copy(acc, Y[by * block_M, bx * block_N])
    return Y


def inputs_lora(rng, *, M, N, K, R, **_):
    x, w = inputs_matmul(rng, M=M, N=N, K=K)
    a, b = inputs_matmul(rng, M=K, N=N, K=R)
    return x, w, (a / 8).astype(np.float16), b


def reference_lora(x, w, a, b, *, scaling=0.5, **_):
    return (x @ w + scaling * (x @ a) @ b,)


@tilelang.jit
def syrk(A, block=32, block_K=16):
    """`A A^T`, lower tiles only; the other half is mirrored on the way out."""
    M, K = T.const("M, K")
    A: T.Tensor((M, K), T.float16)
    C = T.empty((M, M), T.float32)
    tiles = T.ceildiv(M, block)
    with T.Kernel(tiles, tiles, threads=128) as (bx, by):
        if bx <= by:
            rows = T.alloc_shared((block, block_K), T.float16)
            cols = T.alloc_shared((block, block_K), T.float16)
            acc = T.alloc_fragment((block, block), T.float32)
            turned = T.alloc_shared((block, block), T.float32)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, k * block_K], rows)
                T.copy(A[bx * block, k * block_K], cols)
                T.gemm(rows, cols, acc, transpose_B=True)
            T.copy(acc, C[by * block, bx * block])
            for i, j in T.Parallel(block, block):
                turned[j, i] = acc[i, j]
            T.copy(turned, C[bx * block, by * block])
    return C


def inputs_syrk(rng, *, M, K, **_):
    return (rng.standard_normal((M, K)).astype(np.float16),)


def reference_syrk(a, **_):
    return (a @ a.T,)


def get_configs():
    return [
        {"block_M": m, "block_N": n, "num_stages": s}
        for m, n, s in itertools.product([32], [32, 64], [0, 2])
    ]


@tilelang.autotune(configs=get_configs(), warmup=1, rep=1)
@tilelang.jit(out_idx=[-1])
def tuned(M, N, K, block_M=32, block_N=32, num_stages=2, block_K=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float")
            T.annotate_layout(
                {
                    A_shared: tilelang.layout.make_swizzled_layout(A_shared),
                    B_shared: tilelang.layout.make_swizzled_layout(B_shared),
                }
            )
            T.use_swizzle(panel_size=10, enable=True)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                for k, j in T.Parallel(block_K, block_N):
                    B_shared[k, j] = B[ko * block_K + k, bx * block_N + j]
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
