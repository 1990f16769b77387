"""Row groups of one matrix, each times its own weights; every block searches for its group."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def grouped_gemm(
    A,
    B,
    batch_sizes,
    batch_offsets,
    batch_padded_offsets,
    batch_sizes_list,
    block_M,
    block_N,
    block_K,
    trans_b=False,
    num_stages=2,
    threads=128,
    dtype=T.float16,
):
    N, K = T.const("N, K")
    batch_sum = sum(batch_sizes_list)
    batch_count = len(batch_sizes_list)
    accum_dtype = T.float32
    # Groups start on block boundaries of a padded row space, so no block spans two groups.
    total_m_blocks = sum((size + block_M - 1) // block_M for size in batch_sizes_list)
    B_shape = (batch_count, N, K) if trans_b else (batch_count, K, N)
    A: T.Tensor([batch_sum, K], dtype)
    B: T.Tensor(B_shape, dtype)
    batch_sizes: T.Tensor([batch_count], T.int32)
    batch_offsets: T.Tensor([batch_count], T.int32)
    batch_padded_offsets: T.Tensor([batch_count], T.int32)
    C = T.empty((batch_sum, N), dtype)

    with T.Kernel(total_m_blocks, T.ceildiv(N, block_N), threads=threads) as (bx, by):
        A_shared = T.alloc_shared([block_M, block_K], dtype)
        B_shared = T.alloc_shared([block_N, block_K] if trans_b else [block_K, block_N], dtype)
        C_local = T.alloc_fragment([block_M, block_N], accum_dtype)
        group = T.alloc_local([1], T.int32)

        m_start_padded = bx * block_M
        group[0] = 0
        for i in range(batch_count):
            group[0] = T.if_then_else(m_start_padded >= batch_padded_offsets[i], i, group[0])
        cur = group[0]
        row_in_group = m_start_padded - batch_padded_offsets[cur]
        m_start = batch_offsets[cur] + row_in_group
        actual_rows = T.max(0, T.min(block_M, batch_sizes[cur] - row_in_group))

        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(
                A[m_start : m_start + block_M, k * block_K : (k + 1) * block_K],
                A_shared,
            )
            if trans_b:
                T.copy(
                    B[
                        cur,
                        by * block_N : (by + 1) * block_N,
                        k * block_K : (k + 1) * block_K,
                    ],
                    B_shared,
                )
            else:
                T.copy(
                    B[
                        cur,
                        k * block_K : (k + 1) * block_K,
                        by * block_N : (by + 1) * block_N,
                    ],
                    B_shared,
                )
            T.gemm(A_shared, B_shared, C_local, transpose_B=trans_b)

        for i, j in T.Parallel(block_M, block_N):
            if i < actual_rows:
                C[m_start + i, by * block_N + j] = C_local[i, j]

    return C


def inputs(rng, batch_sizes_list, block_M, N, K, trans_b=False, **_):
    sizes = np.array(batch_sizes_list, np.int32)
    padded = -(-sizes // block_M) * block_M
    count = len(sizes)
    a = rng.standard_normal((sizes.sum(), K)).astype(np.float16)
    b = rng.standard_normal((count, N, K) if trans_b else (count, K, N)).astype(np.float16)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    padded_offsets = np.concatenate([[0], np.cumsum(padded)[:-1]]).astype(np.int32)
    return a, b, sizes, offsets, padded_offsets


def reference(a, b, sizes, offsets, _padded, trans_b=False, **_):
    parts = [
        a[start : start + size] @ (weights.T if trans_b else weights)
        for start, size, weights in zip(offsets, sizes, b, strict=True)
    ]
    return (np.concatenate(parts),)
