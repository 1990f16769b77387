"""The state of a Mamba-2 chunk: B^T x, each step weighted by dt and by its decay to the end."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def chunk_state_fwd(
    B, x, dt, dA_cumsum, block_M=64, block_N=64, block_K=64, num_stages=2, threads=128
):
    batch, seqlen, ngroups, dstate = T.const("batch, seqlen, ngroups, dstate")
    nheads, headdim, nchunks, chunk_size = T.const("nheads, headdim, nchunks, chunk_size")
    dtype = T.float16
    accum_dtype = T.float32
    log2_e = 1.44269504
    B: T.Tensor((batch, seqlen, ngroups, dstate), dtype)
    x: T.Tensor((batch, seqlen, nheads, headdim), dtype)
    dt: T.Tensor((batch, nheads, nchunks, chunk_size), dtype)
    dA_cumsum: T.Tensor((batch, nheads, nchunks, chunk_size), dtype)
    Output = T.empty((batch, nchunks, nheads, headdim, dstate), dtype)

    with T.Kernel(
        nheads,
        T.ceildiv(headdim, block_M) * T.ceildiv(dstate, block_N),
        batch * nchunks,
        threads=threads,
    ) as (bz, bx, by):
        x_shared = T.alloc_shared((block_K, block_M), dtype)
        x_local = T.alloc_fragment((block_K, block_M), dtype)
        xt_local = T.alloc_fragment((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        dt_shared = T.alloc_shared((block_K,), dtype)
        dA_cumsum_shared = T.alloc_shared((block_K,), dtype)
        acc_o = T.alloc_fragment((block_M, block_N), accum_dtype)
        acc_o_shared = T.alloc_shared((block_M, block_N), dtype)
        weight = T.alloc_fragment((block_K,), accum_dtype)
        dA_cs_last = T.alloc_var(accum_dtype)

        batch_idx = by % batch
        chunk_idx = by // batch
        m_idx = bx // T.ceildiv(dstate, block_N)
        n_idx = bx % T.ceildiv(dstate, block_N)
        first = chunk_idx * chunk_size

        T.annotate_layout({acc_o_shared: tilelang.layout.make_swizzled_layout(acc_o_shared)})
        dA_cs_last = T.cast(dA_cumsum[batch_idx, bz, chunk_idx, chunk_size - 1], accum_dtype)
        T.clear(acc_o)
        for k in T.Pipelined(T.ceildiv(chunk_size, block_K), num_stages=num_stages):
            T.copy(
                x[
                    batch_idx,
                    first + k * block_K : first + (k + 1) * block_K,
                    bz,
                    m_idx * block_M : (m_idx + 1) * block_M,
                ],
                x_shared,
            )
            T.copy(
                dA_cumsum[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K],
                dA_cumsum_shared,
            )
            T.copy(dt[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dt_shared)
            for i in T.Parallel(block_K):
                # Beyond the chunk dt reads as zero, so a ragged chunk needs no other guard.
                weight[i] = (
                    T.exp2((dA_cs_last - T.cast(dA_cumsum_shared[i], accum_dtype)) * log2_e)
                    * dt_shared[i]
                )
            T.copy(x_shared, x_local)
            for i, j in T.Parallel(block_M, block_K):
                xt_local[i, j] = x_local[j, i] * weight[j]
            T.copy(
                B[
                    batch_idx,
                    first + k * block_K : first + (k + 1) * block_K,
                    bz // (nheads // ngroups),
                    n_idx * block_N : (n_idx + 1) * block_N,
                ],
                B_shared,
            )
            T.gemm(xt_local, B_shared, acc_o)
        T.copy(acc_o, acc_o_shared)
        T.copy(
            acc_o_shared,
            Output[
                batch_idx,
                chunk_idx,
                bz,
                m_idx * block_M : (m_idx + 1) * block_M,
                n_idx * block_N : (n_idx + 1) * block_N,
            ],
        )

    return Output


def inputs(rng, batch, nheads, ngroups, nchunks, chunk_size, headdim, dstate, **_):
    seqlen = nchunks * chunk_size
    decay = -0.05 * rng.random((batch, nheads, nchunks, chunk_size))
    arrays = (
        rng.standard_normal((batch, seqlen, ngroups, dstate)),
        rng.standard_normal((batch, seqlen, nheads, headdim)),
        rng.random((batch, nheads, nchunks, chunk_size)),
        np.cumsum(decay, axis=-1),
    )
    return tuple(array.astype(np.float16) for array in arrays)


def reference(b, x, dt, da, **_):
    batch, nheads, nchunks, chunk_size = dt.shape
    weight = np.exp(da[..., -1:] - da) * dt
    b = np.repeat(b, nheads // b.shape[2], axis=2)
    b = b.reshape(batch, nchunks, chunk_size, nheads, -1)
    x = x.reshape(batch, nchunks, chunk_size, nheads, -1)
    return (np.einsum("bclhn,bhcl,bclhp->bchpn", b, weight, x),)
