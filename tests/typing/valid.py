"""Kernels as users write them: nothing is underlined with the recommended settings."""

import numpy as np

import tilelang
import tilelang.language as T

M_ANY = T.dynamic("m")
ROWS, COLUMNS = T.symbolic("rows"), T.symbolic("columns")
NAMES = ["float16", T.float16, T.bfloat16, T.float8_e4m3fn, T.float32x4]


@tilelang.jit
def matmul(A, B, block_M=64, block_N=64, block_K=32, dtype=T.float16, accum_dtype="float32"):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor[[K, N], dtype]
    C = T.empty((M, N), dtype)
    total = T.empty(1, dtype="int32")

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_tile = T.alloc_shared((block_M, block_K), dtype)
        B_tile = T.alloc_shared((block_K, block_N), dtype, scope="shared")
        sums = T.alloc_fragment((block_M, block_N), accum_dtype)
        row_max = T.alloc_fragment((block_M,), accum_dtype)
        count = T.alloc_var(T.int32, init=0)
        T.use_swizzle(panel_size=10)
        T.annotate_layout({A_tile: T.Layout((block_M, block_K), lambda i, j: (i, j))})
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, k * block_K], A_tile)
            T.copy(B[k * block_K : (k + 1) * block_K, bx * block_N : (bx + 1) * block_N], B_tile)
            T.gemm(A_tile, B_tile, sums, policy=T.GemmWarpPolicy.FullRow)
        T.reduce_max(sums, row_max, dim=1, clear=True)
        for i, j in T.Parallel(block_M, block_N):
            sums[i, j] = T.if_then_else(
                i < j, T.exp2(sums[i, j] - row_max[i]), -T.infinity("float32")
            )
            sums[i, j] *= T.float32(2)
            sums[i, j] /= 1 + T.max(sums[i, j], 0)
        for i in T.serial(4):
            if i > 2 and by == 0:
                count += 1
        while count > 0:
            count = count - 1
        T.atomic_add(total[0], T.Cast("int32", count))
        tx = T.get_thread_binding()
        T.evaluate(T.sync_threads())
        if tx == 0:
            T.print(sums[0, 0], msg="first")
        shape = A_tile.shape[0] + A_tile.ndim
        x = T.alloc_local((4,), A_tile.dtype)
        x[0:4] = B_tile[shape, 0:4]
        T.copy(sums, C[by * block_M, bx * block_N])

    return C, total


@tilelang.jit(target="cuda", compile_flags=["-O3"])
def scale(x, factor: float, n: T.int32, p: T.ptr):
    N = T.const("N")
    x: T.StridedTensor((N,), (2,), T.float32)
    y: T.Tensor((N,), T.float32) = T.make_tensor(p, (N,), T.float32)
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            y[bx * 128 + i] = x[bx * 128 + i] * factor + n


c, total = matmul(np.zeros((64, 32), "float16"), np.zeros((32, 64), "float16"), dtype="float16")
matmul.compile(M=64, N=64, K=32, target="cpu").get_kernel_source().splitlines()
matmul.get_kernel_source(M=64, N=64, K=32)
print(matmul.__name__, matmul.par_compile([{"M": 1}])[0])
