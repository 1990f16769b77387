"""A Hopper matrix product with hand-written roles: the copy engine loads, warp groups multiply."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})
def matmul(
    A, B, block_M, block_N, block_K, stages=3, consumers=1, dtype=T.float16, accum_dtype=T.float32
):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128 * (consumers + 1)) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
        B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), dtype)
        loaded = T.alloc_barrier([128] * stages)
        consumed = T.alloc_barrier([128 * consumers] * stages)

        with T.ws(0):
            T.set_max_nreg(24, 0)
            for ko in range(T.ceildiv(K, block_K)):
                slot = ko % stages
                T.barrier_wait(consumed[slot], ((ko // stages) & 1) ^ 1)
                T.tma_copy(
                    A[by * block_M, ko * block_K], A_shared[slot, :, :], barrier=loaded[slot]
                )
                T.tma_copy(
                    B[ko * block_K, bx * block_N], B_shared[slot, :, :], barrier=loaded[slot]
                )
                T.barrier_arrive(loaded[slot])
        with T.ws(*range(1, consumers + 1)):
            T.set_max_nreg(240, 1)
            T.clear(C_local)
            for ko in range(T.ceildiv(K, block_K)):
                slot = ko % stages
                T.barrier_wait(loaded[slot], (ko // stages) & 1)
                T.wgmma_gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                T.wait_wgmma(0)
                T.barrier_arrive(consumed[slot])
            T.copy(C_local, C_shared)
            T.tma_copy(C_shared, C[by * block_M, bx * block_N])

    return C


def inputs(rng, M, N, K, **_):
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))


def reference(a, b, **_):
    return (a @ b,)
