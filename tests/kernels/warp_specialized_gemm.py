"""A Hopper matrix product with hand-written roles: one warp group copies, one multiplies."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})
def matmul(A, B, block_M, block_N, block_K, dtype=T.float16, accum_dtype=T.float32):
    M, N, K = T.const("M, N, K")
    stages = 2
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
        B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), dtype)
        data_is_ready = T.alloc_barrier([128] * stages)
        compute_is_done = T.alloc_barrier([128] * stages)

        with T.ws(0):
            T.clear(C_local)
        for ko in range(T.ceildiv(K, block_K)):
            slot = ko % stages
            with T.ws(1):
                # The slot is free once the products of its previous round are done.
                T.barrier_wait(compute_is_done[slot], ((ko // stages) % stages) ^ 1)
                T.copy(
                    A[
                        by * block_M : (by + 1) * block_M,
                        ko * block_K : (ko + 1) * block_K,
                    ],
                    A_shared[slot, :, :],
                )
                T.copy(
                    B[
                        ko * block_K : (ko + 1) * block_K,
                        bx * block_N : (bx + 1) * block_N,
                    ],
                    B_shared[slot, :, :],
                )
                T.barrier_arrive(data_is_ready[slot])
            with T.ws(0):
                T.barrier_wait(data_is_ready[slot], (ko // stages) % stages)
                T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                T.barrier_arrive(compute_is_done[slot])
        with T.ws(0):
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return C


def inputs(rng, M, N, K, **_):
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))


def reference(a, b, **_):
    return (a @ b,)
