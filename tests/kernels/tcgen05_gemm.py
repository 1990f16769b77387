"""Blackwell matrix products: a TMA warp, an MMA warp and epilogue warps around tensor memory."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})
def gemm(
    A,
    B,
    block_M,
    block_N,
    block_K,
    in_dtype,
    out_dtype,
    accum_dtype,
    num_stages,
    use_tma_store=True,
):
    M, N, K = T.const("M, N, K")
    k_iters = T.ceildiv(K, block_K)
    A: T.Tensor[[M, K], in_dtype]
    B: T.Tensor[[K, N], in_dtype]
    C = T.empty((M, N), out_dtype)

    with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=256) as (
        bx,
        by,
    ):
        A_shared = T.alloc_shared((num_stages, block_M, block_K), in_dtype)
        B_shared = T.alloc_shared((num_stages, block_K, block_N), in_dtype)
        C_tmem = T.alloc_tmem([block_M, block_N], accum_dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), out_dtype)
        loaded = T.alloc_barrier([1] * num_stages)
        consumed = T.alloc_barrier([1] * num_stages)
        tmem_full = T.alloc_barrier([1])
        tx = T.get_thread_binding()

        if tx < 32:
            for k in T.serial(k_iters):
                slot = k % num_stages
                T.mbarrier_wait_parity(consumed[slot], ((k // num_stages) & 1) ^ 1)
                T.tma_copy(
                    A[
                        bx * block_M : (bx + 1) * block_M,
                        k * block_K : (k + 1) * block_K,
                    ],
                    A_shared[slot, :, :],
                    barrier=loaded[slot],
                )
                T.tma_copy(
                    B[
                        k * block_K : (k + 1) * block_K,
                        by * block_N : (by + 1) * block_N,
                    ],
                    B_shared[slot, :, :],
                    barrier=loaded[slot],
                )
                T.mbarrier_arrive(loaded[slot])
        elif tx < 64:
            for k in T.serial(k_iters):
                slot = k % num_stages
                T.mbarrier_wait_parity(loaded[slot], (k // num_stages) & 1)
                T.tcgen05_gemm(
                    A_shared[slot, :, :],
                    B_shared[slot, :, :],
                    C_tmem,
                    mbar=consumed[slot],
                    clear_accum=k == 0,
                )
            T.tcgen05_mma_arrive(tmem_full)

        T.mbarrier_wait_parity(tmem_full, 0)
        T.copy(C_tmem, C_local)
        if use_tma_store:
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[bx * block_M, by * block_N])
        else:
            T.copy(C_local, C[bx * block_M, by * block_N])

    return C


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True})
def gemm_2cta(
    A,
    B,
    block_M,
    block_N,
    block_K,
    in_dtype,
    out_dtype,
    accum_dtype,
    num_stages,
    use_tma_store=True,
):
    """Two blocks of a cluster share one product: each loads half of B, the first one issues."""
    M, N, K = T.const("M, N, K")
    k_iters = T.ceildiv(K, block_K)
    half_N = block_N // 2
    A: T.Tensor[[M, K], in_dtype]
    B: T.Tensor[[K, N], in_dtype]
    C = T.empty((M, N), out_dtype)

    with T.ClusterKernel(
        T.ceildiv(M, block_M),
        T.ceildiv(N, block_N),
        cluster_dims=(2, 1, 1),
        threads=256,
    ) as (bx, by):
        A_shared = T.alloc_shared((num_stages, block_M, block_K), in_dtype)
        B_shared = T.alloc_shared((num_stages, block_K, half_N), in_dtype)
        C_tmem = T.alloc_tmem([block_M, block_N], accum_dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_N), out_dtype)
        loaded = T.alloc_cluster_barrier([2] * num_stages)
        consumed = T.alloc_cluster_barrier([1] * num_stages)
        tmem_full = T.alloc_barrier([1])
        tx = T.get_thread_binding()
        rank = T.block_rank_in_cluster()
        T.assume(rank < 2)

        if tx < 32:
            for k in T.serial(k_iters):
                slot = k % num_stages
                T.mbarrier_wait_parity(consumed[slot], ((k // num_stages) & 1) ^ 1)
                T.tma_copy(
                    A[
                        bx * block_M : (bx + 1) * block_M,
                        k * block_K : (k + 1) * block_K,
                    ],
                    A_shared[slot, :, :],
                    barrier=loaded[slot],
                )
                column = by * block_N + rank * half_N
                T.tma_copy(
                    B[k * block_K : (k + 1) * block_K, column : column + half_N],
                    B_shared[slot, :, :],
                    barrier=loaded[slot],
                )
                T.mbarrier_arrive(loaded[slot], 0)
        elif rank == 0 and tx < 64:
            for k in T.serial(k_iters):
                slot = k % num_stages
                T.mbarrier_wait_parity(loaded[slot], (k // num_stages) & 1)
                T.tcgen05_gemm(
                    A_shared[slot, :, :],
                    B_shared[slot, :, :],
                    C_tmem,
                    mbar=consumed[slot],
                    clear_accum=k == 0,
                    use_2cta=True,
                )
            T.tcgen05_mma_arrive(tmem_full, arrive_2cta=True)

        T.mbarrier_wait_parity(tmem_full, 0)
        T.copy(C_tmem, C_local)
        if use_tma_store:
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[bx * block_M, by * block_N])
        else:
            T.copy(C_local, C[bx * block_M, by * block_N])

    return C


def inputs(rng, M, N, K, **_):
    import torch

    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((M, K), (K, N))]
    return tuple(torch.from_numpy(x).bfloat16() for x in arrays)


def reference(a, b, **_):
    return (a @ b,)
