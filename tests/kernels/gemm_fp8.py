"""An fp8 product in two levels: tensor-core partial sums are promoted to a second accumulator."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, block_M, block_N, block_K, dtype, accum_dtype=T.float32):
    M, N, K = T.const("M, N, K")
    # Fp8 tensor cores keep few bits of the running sum: it is moved out every 128 products.
    update_interval = max(1, 128 // block_K)
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((N, K), dtype)
    C = T.empty((M, N), accum_dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K), dtype)
        C_shared = T.alloc_shared((block_M, block_N), accum_dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_local_accum = T.alloc_fragment((block_M, block_N), accum_dtype)

        T.clear(C_local)
        T.clear(C_local_accum)
        K_iters = T.ceildiv(K, block_K)
        for k in T.Pipelined(K_iters, num_stages=3):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[bx * block_N, k * block_K], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            if (k + 1) % update_interval == 0:
                for i, j in T.Parallel(block_M, block_N):
                    C_local_accum[i, j] += C_local[i, j]
                T.clear(C_local)
        if K_iters % update_interval != 0:
            for i, j in T.Parallel(block_M, block_N):
                C_local_accum[i, j] += C_local[i, j]
        T.copy(C_local_accum, C_shared)
        T.copy(C_shared, C[by * block_M, bx * block_N])

    return C


def inputs(rng, M, N, K, dtype, **_):
    import torch

    torch_dtype = getattr(torch, str(dtype).removeprefix("torch."))
    shapes = ((M, K), (N, K))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return tuple(torch.from_numpy(x).to(torch_dtype) for x in arrays)


def reference(a, b, **_):
    return (a @ b.T,)
