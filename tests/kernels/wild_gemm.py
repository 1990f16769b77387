"""Products as met in the wild: epilogues, batches, groups, scales, split and persistent."""

import numpy as np

import tilelang
import tilelang.language as T

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: T.max(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + T.erf(x * 0.7071067811865476)),
    "silu": lambda x: x * T.sigmoid(x),
    "tanh_gelu": lambda x: 0.5 * x * (1.0 + T.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
}


@tilelang.jit
def linear(X, W, bias, block_M: int = 32, block_N: int = 32, block_K: int = 32, act: str = "gelu"):
    M, N, K = T.const("M, N, K")
    X: T.Tensor((M, K), T.float16)
    W: T.Tensor((N, K), T.float16)
    bias: T.Tensor((N,), T.float32)
    Y = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        X_shared = T.alloc_shared((block_M, block_K), X.dtype)
        W_shared = T.alloc_shared((block_N, block_K), W.dtype)
        Y_local = T.alloc_fragment((block_M, block_N), "float")
        bias_local = T.alloc_fragment((block_N,), "float32")
        T.copy(bias[bx * block_N : (bx + 1) * block_N], bias_local)
        for i, j in T.Parallel(block_M, block_N):
            Y_local[i, j] = bias_local[j]
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(X[by * block_M, ko * block_K], X_shared)
            T.copy(W[bx * block_N, ko * block_K], W_shared)
            T.gemm(X_shared, W_shared, Y_local, transpose_B=True)
        for i, j in T.Parallel(block_M, block_N):
            Y_local[i, j] = ACTIVATIONS[act](Y_local[i, j])
        T.copy(Y_local, Y[by * block_M, bx * block_N])
    return Y


def inputs_linear(rng, *, M, N, K, **_):
    x = rng.standard_normal((M, K)).astype(np.float16)
    w = (rng.standard_normal((N, K)) / 6).astype(np.float16)
    return x, w, rng.standard_normal(N).astype(np.float32)


def reference_linear(x, w, bias, *, act, **_):
    from math import erf

    z = x @ w.T + bias
    acts = {
        "none": lambda: z,
        "relu": lambda: np.maximum(z, 0),
        "gelu": lambda: 0.5 * z * (1 + np.vectorize(erf)(z / np.sqrt(2))),
        "silu": lambda: z / (1 + np.exp(-z)),
        "tanh_gelu": lambda: 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3))),
    }
    return (acts[act](),)


def bmm(B, M, N, K, *, block_M=32, block_N=32, block_K=16, num_stages=2, dtype="float16"):
    """Batched, with a batch stride of 0 allowed on the right: keyword-only configuration."""
    accum_dtype = "float32" if dtype != "float64" else dtype

    @T.prim_func
    def main(
        A: T.Tensor((B, M, K), dtype),
        Bt: T.Tensor((B, K, N), dtype),
        C: T.Tensor((B, M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), B, threads=128) as (
            pid_n,
            pid_m,
            pid_b,
        ):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=4, order="column")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[pid_b, pid_m * block_M, k * block_K], a)
                T.copy(Bt[pid_b, k * block_K, pid_n * block_N], b)
                T.gemm(a, b, acc, policy=T.GemmWarpPolicy.FullCol)
            T.copy(acc, C[pid_b, pid_m * block_M, pid_n * block_N])

    return main


def inputs_bmm(rng, *, B, M, N, K, **_):
    return (
        rng.standard_normal((B, M, K)).astype(np.float16),
        rng.standard_normal((B, K, N)).astype(np.float16),
    )


def reference_bmm(a, b, **_):
    return (a @ b,)


@tilelang.jit(out_idx=[-1])
def strided_gemm(M, N, K, lda, ldb, block=32):
    """Rows of A and B lie further apart than they are long, as slices of larger tensors do."""

    @T.prim_func
    def main(
        A: T.StridedTensor((M, K), (lda, 1), "float16"),
        B: T.StridedTensor((K, N), (ldb, 1), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, block), "float16")
            B_s = T.alloc_shared((block, block), "float16")
            C_f = T.alloc_fragment((block, block), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=3):
                T.copy(A[by * block, k * block], A_s)
                T.copy(B[k * block, bx * block], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block, bx * block])

    return main


def inputs_strided(rng, *, M, N, K, lda, ldb, **_):
    a = rng.standard_normal((M, lda)).astype(np.float16)
    b = rng.standard_normal((K, ldb)).astype(np.float16)
    return a[:, :K], b[:, :N]


def reference_matmul(a, b, **_):
    return (a @ b,)


@tilelang.jit(out_idx=[-1])
def fp8_block_scaled(M, N, K, out_dtype="bfloat16", accum_dtype="float32", group_size=128):
    block_M, block_N, block_K = 32, 64, group_size
    k_groups = T.ceildiv(K, group_size)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float8_e4m3fn"),
        B: T.Tensor((N, K), "float8_e4m3fn"),
        scales_a: T.Tensor((M, k_groups), "float32"),
        scales_b: T.Tensor((T.ceildiv(N, group_size), k_groups), "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float8_e4m3fn")
            B_shared = T.alloc_shared((block_N, block_K), "float8_e4m3fn")
            C_shared = T.alloc_shared((block_M, block_N), out_dtype)
            Scale_C_shared = T.alloc_shared((block_M,), "float32")
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_local_accum = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            T.clear(C_local_accum)
            for k in T.Pipelined(k_groups, num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                scale_b = scales_b[bx * block_N // group_size, k]
                for i in T.Parallel(block_M):
                    Scale_C_shared[i] = scales_a[by * block_M + i, k] * scale_b
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_local_accum[i, j] += C_local[i, j] * Scale_C_shared[i]
                T.clear(C_local)
            T.copy(C_local_accum, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


def inputs_fp8_block_scaled(rng, *, M, N, K, group_size=128, **_):
    import torch

    def fp8(*shape):
        values = rng.standard_normal(shape).astype(np.float32) * 4
        return torch.from_numpy(values).to(torch.float8_e4m3fn)

    groups = -(-K // group_size)
    scale_a = torch.from_numpy(rng.uniform(0.5, 2, (M, groups)).astype(np.float32))
    scale_b = torch.from_numpy(
        rng.uniform(0.5, 2, (-(-N // group_size), groups)).astype(np.float32)
    )
    return fp8(M, K), fp8(N, K), scale_a, scale_b


def reference_fp8_block_scaled(a, b, scale_a, scale_b, *, group_size=128, **_):
    a = a * np.repeat(scale_a, group_size, 1)[:, : a.shape[1]]
    full = np.repeat(np.repeat(scale_b, group_size, 0), group_size, 1)
    return (a @ (b * full[: b.shape[0], : b.shape[1]]).T,)


@tilelang.jit
def grouped_by_index(A, B, group_of_block, block_M=16, block_N=32, block_K=32):
    """Contiguous grouped GEMM: each block of rows belongs to one expert, -1 is padding."""
    M, N, K, E, blocks = T.const("M, N, K, E, blocks")
    A: T.Tensor((M, K), T.bfloat16)
    B: T.Tensor((E, N, K), T.bfloat16)
    group_of_block: T.Tensor((blocks,), T.int32)
    C = T.empty((M, N), T.bfloat16)

    with T.Kernel(T.ceildiv(N, block_N), blocks, threads=64) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.bfloat16)
        B_shared = T.alloc_shared((block_N, block_K), T.bfloat16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(acc)
        expert = group_of_block[by]
        if expert >= 0:
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(
                    A[by * block_M : (by + 1) * block_M, k * block_K : (k + 1) * block_K], A_shared
                )
                T.copy(
                    B[expert, bx * block_N : (bx + 1) * block_N, k * block_K : (k + 1) * block_K],
                    B_shared,
                )
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(acc, C[by * block_M, bx * block_N])
    return C


def inputs_grouped(rng, *, N, K, groups, block_M=16, **_):
    import torch

    E = max(groups) + 1
    a = torch.from_numpy(rng.standard_normal((len(groups) * block_M, K)).astype(np.float32))
    b = torch.from_numpy(rng.standard_normal((E, N, K)).astype(np.float32))
    return a.bfloat16(), b.bfloat16(), torch.tensor(groups, dtype=torch.int32)


def reference_grouped(a, b, owners, *, block_M=16, **_):
    out = np.zeros((a.shape[0], b.shape[1]))
    for at, expert in enumerate(owners):
        rows = slice(at * block_M, (at + 1) * block_M)
        if expert >= 0:
            out[rows] = a[rows] @ b[expert].T
    return (out,)


@tilelang.jit
def persistent_gemm(A, B, block_M=32, block_N=32, block_K=32, sm_num=5):
    M, N, K = T.const("M N K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C = T.empty((M, N), "float32")
    grid_m, grid_n = T.ceildiv(M, block_M), T.ceildiv(N, block_N)
    with T.Kernel(sm_num, threads=128) as (block_id):
        A_shared = T.alloc_shared((block_M, block_K), "float16")
        B_shared = T.alloc_shared((block_K, block_N), "float16")
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        C_shared = T.alloc_shared((block_M, block_N), "float32")
        for bx, by in T.Persistent([grid_m, grid_n], sm_num, block_id):
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[bx * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, by * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[bx * block_M, by * block_N])
    return C


@tilelang.jit
def persistent_by_hand(A, B, block_M=32, block_N=32, block_K=32, sm_num=4, group_size=3):
    """The schedule of a persistent GEMM written out: waves, groups and a bound check."""
    M, N, K = T.const("M N K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C = T.empty((M, N), "float32")
    m_blocks = T.ceildiv(M, block_M)
    n_blocks = T.ceildiv(N, block_N)
    waves = T.ceildiv(m_blocks * n_blocks, sm_num)
    with T.Kernel(sm_num, threads=128) as block_id:
        A_shared = T.alloc_shared((block_M, block_K), "float16")
        B_shared = T.alloc_shared((block_K, block_N), "float16")
        C_local = T.alloc_fragment((block_M, block_N), "float32")
        for w in T.serial(waves):
            tile_id = sm_num * w + block_id
            bx = (tile_id // group_size) % m_blocks
            by = (tile_id % group_size) + (tile_id // group_size) // m_blocks * group_size
            if bx * block_M < M and by * block_N < N:
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                    T.copy(A[bx * block_M, k * block_K], A_shared)
                    T.copy(B[k * block_K, by * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[bx * block_M, by * block_N])
    return C


def inputs_matmul(rng, *, M, N, K, **_):
    return (
        rng.standard_normal((M, K)).astype(np.float16),
        rng.standard_normal((K, N)).astype(np.float16),
    )


@tilelang.jit
def stream_k(A, B, C, block_M=32, block_N=32, block_K=16, programs=5):
    """Iterations, not tiles, are dealt evenly; a tile that several blocks share is added up."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((N, K), T.float16)
    C: T.Tensor((M, N), T.float32)
    tiles_m = T.ceildiv(M, block_M)
    tiles_n = T.ceildiv(N, block_N)
    iters_per_tile = T.ceildiv(K, block_K)
    total = tiles_m * tiles_n * iters_per_tile
    per_program = T.ceildiv(total, programs)

    with T.Kernel(programs, threads=128) as pid:
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_N, block_K), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        start_iter = T.alloc_var(T.int32)
        end_iter = T.alloc_var(T.int32)
        start_iter = pid * per_program
        last_iter = T.min(total, (pid + 1) * per_program)
        while start_iter < last_iter:
            end_iter = T.min(
                start_iter + (iters_per_tile - (start_iter % iters_per_tile)), last_iter
            )
            tile_id = start_iter // iters_per_tile
            pid_m = tile_id // tiles_n
            pid_n = tile_id % tiles_n
            T.clear(C_local)
            for i in T.serial(end_iter - start_iter):
                k = (start_iter + i) % iters_per_tile
                T.copy(A[pid_m * block_M, k * block_K], A_shared)
                T.copy(B[pid_n * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            if start_iter % iters_per_tile == 0 and end_iter % iters_per_tile == 0:
                T.copy(C_local, C[pid_m * block_M, pid_n * block_N])
            else:
                for i, j in T.Parallel(block_M, block_N):
                    T.atomic_add(C[pid_m * block_M + i, pid_n * block_N + j], C_local[i, j])
            start_iter = end_iter


def inputs_stream_k(rng, *, M, N, K, **_):
    a, b = inputs_matmul(rng, M=M, N=N, K=K)
    return a, np.ascontiguousarray(b.T), np.zeros((M, N), np.float32)


def reference_stream_k(a, b, _c, **_):
    return (a @ b.T,)


@tilelang.jit
def swiglu_mlp(X, W_gate, W_up, block_M=32, block_N=32, block_K=32):
    """Both products of a gated layer in one loop: `silu(X @ G) * (X @ U)`."""
    M, N, K = T.const("M, N, K")
    X: T.Tensor[[M, K], T.bfloat16]
    W_gate: T.Tensor[[N, K], T.bfloat16]
    W_up: T.Tensor[[N, K], T.bfloat16]
    Y = T.empty([M, N], dtype=T.bfloat16)

    with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=(128,)) as (bx, by):
        x = T.alloc_shared([block_M, block_K], T.bfloat16)
        weights = [T.alloc_shared([block_N, block_K], T.bfloat16) for _ in range(2)]
        sums = [T.alloc_fragment([block_M, block_N], T.float32) for _ in range(2)]
        for acc in sums:
            T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(X[bx * block_M, k * block_K], x)
            for source, w, acc in zip((W_gate, W_up), weights, sums, strict=False):
                T.copy(source[by * block_N, k * block_K], w)
                T.gemm(x, w, acc, transpose_B=True)
        gate, up = sums
        for i, j in T.Parallel(block_M, block_N):
            up[i, j] = gate[i, j] / (1.0 + T.exp2(-gate[i, j] * 1.44269504)) * up[i, j]
        T.copy(up, Y[bx * block_M, by * block_N])
    return Y


def inputs_swiglu(rng, *, M, N, K, **_):
    import torch

    def bf16(*shape):
        values = rng.standard_normal(shape).astype(np.float32) / shape[-1] ** 0.25
        return torch.from_numpy(values).bfloat16()

    return bf16(M, K), bf16(N, K), bf16(N, K)


def reference_swiglu(x, gate, up, **_):
    g = x @ gate.T
    return (g / (1 + np.exp(-g)) * (x @ up.T),)
