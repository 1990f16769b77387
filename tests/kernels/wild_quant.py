"""Weights of few bits: int4, fp4, nf4 and codebooks, 2:4 and block sparse, and what makes them."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[4])
def int4_asymmetric(M, N, K, group=32, block_M=32, block_N=32, block_K=32, num_stages=2):
    """Two weights a byte along K, a scale and a zero point for each group."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K // 2), "uint8"),
        scales: T.Tensor((N, K // group), "float16"),
        zeros: T.Tensor((N, K // group), "uint8"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K // 2), "uint8")
            B_packed = T.alloc_fragment((block_N, block_K // 2), "uint8")
            B_local = T.alloc_fragment((block_N, block_K), "float16")
            B_dequant = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(K // block_K, num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // 2], B_shared)
                T.copy(B_shared, B_packed)
                for i, j in T.Parallel(block_N, block_K):
                    nibble = (B_packed[i, j // 2] >> ((j % 2) * 4)) & 0xF
                    g = (k * block_K + j) // group
                    B_local[i, j] = (
                        T.cast(nibble, "float16") - T.cast(zeros[bx * block_N + i, g], "float16")
                    ) * scales[bx * block_N + i, g]
                T.copy(B_local, B_dequant)
                T.gemm(A_shared, B_dequant, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def inputs_int4(rng, *, M, N, K, group=32, **_):
    return (
        rng.standard_normal((M, K)).astype(np.float16),
        rng.integers(0, 256, (N, K // 2)).astype(np.uint8),
        rng.uniform(0.1, 0.5, (N, K // group)).astype(np.float16),
        rng.integers(0, 16, (N, K // group)).astype(np.uint8),
    )


def reference_int4(a, b, scales, zeros, *, group=32, **_):
    w = np.stack([b & 15, b >> 4], -1).reshape(b.shape[0], -1).astype(float)
    w = (w - np.repeat(zeros.astype(float), group, 1)) * np.repeat(scales, group, 1)
    return (a @ w.T,)


NF4 = (
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
)  # fmt: skip


@tilelang.jit
def codebook_gemm(A, B, table, absmax, block_M=32, block_N=32, block_K=64, blocksize=64):
    """nf4: a table of sixteen in shared memory, a factor for each run of a row."""
    M, N, K2, codes = T.const("M, N, K2, codes")
    K = K2 * 2
    A: T.Tensor((M, K2 * 2), T.bfloat16)
    B: T.Tensor((N, K2), T.uint8)
    table: T.Tensor((codes,), T.float32)
    absmax: T.Tensor((N, K2 * 2 // blocksize), T.float32)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        lut = T.alloc_shared((codes,), T.float32)
        a = T.alloc_shared((block_M, block_K), T.bfloat16)
        w = T.alloc_shared((block_N, block_K), T.bfloat16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.copy(table, lut)
        T.clear(acc)
        for ko in T.serial(K // block_K):
            T.copy(A[by * block_M, ko * block_K], a)
            for i, j in T.Parallel(block_N, block_K // 2):
                row = bx * block_N + i
                if row < N:
                    byte = B[row, ko * block_K // 2 + j]
                    factor = absmax[row, (ko * block_K + 2 * j) // blocksize]
                    w[i, 2 * j] = lut[byte >> 4] * factor
                    w[i, 2 * j + 1] = lut[byte & 0x0F] * factor
                else:
                    w[i, 2 * j] = 0
                    w[i, 2 * j + 1] = 0
            T.gemm(a, w, acc, transpose_B=True)
        T.copy(acc, C[by * block_M, bx * block_N])
    return C


def inputs_codebook(rng, *, M, N, K2, codes, blocksize=64, **_):
    import torch

    a = torch.from_numpy(rng.standard_normal((M, 2 * K2)).astype(np.float32)).bfloat16()
    b = torch.from_numpy(rng.integers(0, 256, (N, K2)).astype(np.uint8))
    absmax = torch.from_numpy(rng.uniform(0.5, 2, (N, 2 * K2 // blocksize)).astype(np.float32))
    return a, b, torch.tensor(NF4[:codes], dtype=torch.float32), absmax


def reference_codebook(a, b, table, absmax, *, blocksize=64, **_):
    w = np.stack([table[b >> 4], table[b & 15]], -1).reshape(len(b), -1)
    return (a @ (w * np.repeat(absmax, blocksize, 1)).T,)


def fp4_to_float(code, dtype):
    """e2m1 by its bits: a sign, two bits of exponent, one of mantissa."""
    sign = T.cast(code >> 3, "int32")
    exponent = T.cast((code >> 1) & 3, "int32")
    mantissa = T.cast(code & 1, "int32")
    size = T.if_then_else(
        exponent == 0, mantissa * 0.5, (1 + mantissa * 0.5) * T.cast(1 << exponent, "float32") / 2
    )
    return T.cast(T.if_then_else(sign == 1, -size, size), dtype)


@tilelang.jit(out_idx=-1)
def mxfp4(M, N, K, block_M=32, block_N=32, block_K=64, dtype="float16"):
    """fp4 with one power of two for each 32 elements; unpacked by a function of Python."""

    @T.prim_func
    def main(
        A: T.Tensor([M, K], dtype),
        B: T.Tensor([N, K // 2], "uint8"),
        E: T.Tensor([N, K // 32], "uint8"),
        C: T.Tensor([M, N], "float"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (bm, bn):
            As = T.alloc_shared([block_M, block_K], dtype)
            Bs = T.alloc_shared([block_N, block_K // 2], "uint8")
            Bd = T.alloc_fragment([block_N, block_K], dtype)
            Cl = T.alloc_fragment([block_M, block_N], "float")
            T.clear(Cl)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[bm * block_M, k * block_K], As)
                T.copy(B[bn * block_N, k * (block_K // 2)], Bs)
                for i, j in T.Parallel(block_N, block_K):
                    code = T.shift_right(Bs[i, j // 2], T.cast((j & 1) * 4, "uint8")) & T.uint8(15)
                    power = T.cast(E[bn * block_N + i, (k * block_K + j) // 32], "int32") - 127
                    Bd[i, j] = fp4_to_float(code, "float32") * T.exp2(T.cast(power, "float32"))
                T.gemm(As, Bd, Cl, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            T.copy(Cl, C[bm * block_M, bn * block_N])

    return main


def inputs_mxfp4(rng, *, M, N, K, **_):
    return (
        rng.standard_normal((M, K)).astype(np.float16),
        rng.integers(0, 256, (N, K // 2)).astype(np.uint8),
        rng.integers(124, 130, (N, K // 32)).astype(np.uint8),
    )


def reference_mxfp4(a, b, e, **_):
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([values, -values])
    w = values[np.stack([b & 15, b >> 4], -1).reshape(len(b), -1)]
    return (a @ (w * np.repeat(2.0 ** (e.astype(float) - 127), 32, 1)).T,)


@tilelang.jit
def sparse_2_4(A, Index, B, block_M=32, block_N=32, block_K=32):
    """Two of four kept, with two bits each that say where: spread out, then multiplied."""
    M, K2, N = T.const("M, K2, N")
    A: T.Tensor((M, K2), T.float16)
    Index: T.Tensor((M, K2 // 2), T.uint8)
    B: T.Tensor((2 * K2, N), T.float16)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        dense = T.alloc_shared((block_M, block_K), T.float16)
        b = T.alloc_shared((block_K, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(acc)
        for k in T.serial(T.ceildiv(2 * K2, block_K)):
            T.clear(dense)
            for i, g in T.Parallel(block_M, block_K // 4):
                quad = k * (block_K // 4) + g
                if by * block_M + i < M and quad < K2 // 2:
                    where = Index[by * block_M + i, quad]
                    for e in T.serial(2):
                        place = T.cast(T.shift_right(where, T.uint8(2 * e)) & T.uint8(3), T.int32)
                        dense[i, 4 * g + place] = A[by * block_M + i, 2 * quad + e]
            T.copy(B[k * block_K, bx * block_N], b)
            T.gemm(dense, b, acc)
        T.copy(acc, C[by * block_M, bx * block_N])
    return C


def inputs_2_4(rng, *, M, K2, N, **_):
    pairs = np.array([(a, b) for a in range(4) for b in range(a + 1, 4)])
    chosen = pairs[rng.integers(0, 6, (M, K2 // 2))]
    return (
        rng.standard_normal((M, K2)).astype(np.float16),
        (chosen[..., 0] | chosen[..., 1] << 2).astype(np.uint8),
        rng.standard_normal((2 * K2, N)).astype(np.float16),
    )


def reference_2_4(a, index, b, **_):
    dense = np.zeros((len(a), len(b)))
    rows = np.arange(len(a))[:, None]
    for e in range(2):
        at = 4 * np.arange(index.shape[1]) + (index >> (2 * e) & 3)
        dense[rows, at] = a[:, e::2]
    return (dense @ b,)


@tilelang.jit
def block_sparse(values, columns, row_start, B, size=16, block_N=32):
    """Blocks in compressed rows: from where to where a row of blocks goes is known at run time."""
    nnz, rows_1, K, N = T.const("nnz rows_1 K N")
    values: T.Tensor((nnz, size, size), T.float16)
    columns: T.Tensor((nnz,), T.int32)
    row_start: T.Tensor((rows_1,), T.int32)
    B: T.Tensor((K, N), T.float16)
    rows = rows_1 - 1
    C = T.empty((rows * size, N), T.float32)
    with T.Kernel(rows, T.ceildiv(N, block_N), threads=64) as (r, bn):
        a = T.alloc_shared((size, size), T.float16)
        b = T.alloc_shared((size, block_N), T.float16)
        c = T.alloc_fragment((size, block_N), T.float32)
        T.fill(c, 0.0)
        for p in T.Pipelined(row_start[r], row_start[r + 1], num_stages=2):
            T.copy(values[p, 0, 0], a)
            T.copy(B[columns[p] * size, bn * block_N], b)
            T.gemm(a, b, c)
        T.copy(c, C[r * size, bn * block_N])
    return C


def inputs_block_sparse(rng, *, nnz, rows_1, K, N, size=16, **_):
    cuts = np.sort(rng.integers(0, nnz + 1, rows_1 - 2))
    return (
        rng.standard_normal((nnz, size, size)).astype(np.float16),
        rng.integers(0, K // size, nnz).astype(np.int32),
        np.array([0, *cuts, nnz], np.int32),
        rng.standard_normal((K, N)).astype(np.float16),
    )


def reference_block_sparse(values, columns, start, b, *, size=16, **_):
    out = np.zeros((len(start) - 1, size, b.shape[1]))
    for r in range(len(out)):
        for p in range(start[r], start[r + 1]):
            out[r] += values[p] @ b[columns[p] * size : (columns[p] + 1) * size]
    return (out.reshape(-1, b.shape[1]),)


@tilelang.jit(out_idx=[1, 2])
def pack_int4(M, N, group=32, rows=4):
    """Symmetric int4 of groups: two in a byte, the scales beside."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float16"),
        Q: T.Tensor((M, N // 2), "uint8"),
        S: T.Tensor((M, N // group), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, rows), N // group, threads=64) as (bx, g):
            x = T.alloc_fragment((rows, group), "float32")
            most = T.alloc_fragment((rows,), "float32")
            q = T.alloc_shared((rows, group), "int8")
            T.copy(X[bx * rows, g * group], x)
            T.reduce_absmax(x, most, dim=1)
            for i in T.Parallel(rows):
                most[i] = T.max(most[i], 1e-6) / 7.0
            for i, j in T.Parallel(rows, group):
                q[i, j] = T.clamp(T.round(x[i, j] / most[i]), -8, 7)
            for i, j in T.Parallel(rows, group // 2):
                low = T.cast(q[i, 2 * j], "uint8") & 15
                high = T.cast(q[i, 2 * j + 1], "uint8") & 15
                if bx * rows + i < M:
                    Q[bx * rows + i, g * (group // 2) + j] = low | (high << 4)
            T.copy(most, S[bx * rows : (bx + 1) * rows, g])

    return main


def inputs_pack(rng, *, M, N, group=32, **_):
    """Numbers that are nowhere near the middle between two codes."""
    q = rng.integers(-7, 8, (M, N // group, group)) + rng.uniform(-0.3, 0.3, (M, N // group, group))
    q[..., 0] = 7
    scale = 2.0 ** rng.integers(-3, 3, (M, N // group, 1))
    return (np.clip(q * scale, -7 * scale, 7 * scale).reshape(M, N).astype(np.float16),)


def reference_pack(x, *, M, N, group=32, **_):
    s = np.abs(x.reshape(M, -1, group)).max(-1) / 7
    q = np.rint(x / np.repeat(s, group, 1)).astype(np.int64) & 15
    return q[:, ::2] | q[:, 1::2] << 4, s
