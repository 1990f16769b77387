"""Linear attention and state spaces: chunks that carry a state, and gates between them."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def chunk_scan(
    cb,
    x,
    dt,
    dA_cumsum,
    C,
    prev_states,
    D,
    block_M=32,
    block_N=32,
    block_K=32,
    block_Dstate=32,
    num_stages=2,
    threads=128,
    scope="shared.dyn",
):
    """Mamba2: what a chunk sees of the state before it and of itself, with a skip connection."""
    batch, nchunks, ngroups, chunk, seqlen, nheads, headdim, dstate = T.const(
        "batch nchunks ngroups chunk seqlen nheads headdim dstate"
    )
    dtype, accum_dtype = T.float16, T.float32
    cb: T.Tensor((batch, nchunks, ngroups, chunk, chunk), dtype)
    x: T.Tensor((batch, seqlen, nheads, headdim), dtype)
    dt: T.Tensor((batch, nheads, nchunks, chunk), dtype)
    dA_cumsum: T.Tensor((batch, nheads, nchunks, chunk), dtype)
    C: T.Tensor((batch, seqlen, ngroups, dstate), dtype)
    prev_states: T.Tensor((batch, nchunks, nheads, headdim, dstate), dtype)
    D: T.Tensor((nheads,), dtype)
    Output = T.empty((batch, seqlen, nheads, headdim), dtype)
    p = 1.44269504

    with T.Kernel(
        nheads,
        T.ceildiv(chunk, block_M) * T.ceildiv(headdim, block_N),
        batch * nchunks,
        threads=threads,
    ) as (bz, bx, by):
        acc_o = T.alloc_fragment((block_M, block_N), accum_dtype)
        cb_shared = T.alloc_shared((block_M, block_K), dtype, scope=scope)
        cb_local = T.alloc_fragment((block_M, block_K), dtype)
        dA_cs_k_shared = T.alloc_shared((block_K,), dtype, scope=scope)
        dA_cs_k_local = T.alloc_fragment((block_K,), accum_dtype)
        dA_cs_m_local = T.alloc_fragment((block_M,), accum_dtype)
        dt_shared = T.alloc_shared((block_K,), dtype, scope=scope)
        dt_local = T.alloc_fragment((block_K,), accum_dtype)
        x_shared = T.alloc_shared((block_K, block_N), dtype, scope="shared.dyn")
        dA_cs_m_shared = T.alloc_shared((block_M,), dtype, scope=scope)
        scale_m_local = T.alloc_fragment((block_M,), accum_dtype)
        C_shared = T.alloc_shared((block_M, block_Dstate), dtype)
        prev_state_shared = T.alloc_shared((block_N, block_Dstate), dtype)
        D_local = T.alloc_fragment((1,), accum_dtype)
        x_residual_shared = T.alloc_shared((block_M, block_N), dtype, scope="shared.dyn")
        x_residual_local = T.alloc_fragment((block_M, block_N), accum_dtype)

        batch_idx = by % batch
        chunk_idx = by // batch
        m_idx = bx // T.ceildiv(headdim, block_N)
        n_idx = bx % T.ceildiv(headdim, block_N)
        T.no_set_max_nreg()
        T.copy(
            dA_cumsum[batch_idx, bz, chunk_idx, m_idx * block_M : (m_idx + 1) * block_M],
            dA_cs_m_shared,
        )
        T.copy(dA_cs_m_shared, dA_cs_m_local)
        T.clear(acc_o)
        for i in T.Parallel(block_M):
            scale_m_local[i] = T.exp2(dA_cs_m_local[i] * p)
        T.copy(
            C[
                batch_idx,
                chunk_idx * chunk + m_idx * block_M : chunk_idx * chunk + (m_idx + 1) * block_M,
                bz // (nheads // ngroups),
                0:block_Dstate,
            ],
            C_shared,
        )
        T.copy(
            prev_states[
                batch_idx, chunk_idx, bz, n_idx * block_N : (n_idx + 1) * block_N, 0:block_Dstate
            ],
            prev_state_shared,
        )
        T.gemm(C_shared, prev_state_shared, acc_o, transpose_B=True)
        for i, j in T.Parallel(block_M, block_N):
            acc_o[i, j] *= scale_m_local[i]
        loop_range = T.ceildiv((m_idx + 1) * block_M, block_K)
        for k in T.Pipelined(loop_range, num_stages=num_stages):
            T.copy(
                cb[
                    batch_idx,
                    chunk_idx,
                    bz // (nheads // ngroups),
                    m_idx * block_M : (m_idx + 1) * block_M,
                    k * block_K : (k + 1) * block_K,
                ],
                cb_shared,
            )
            T.copy(cb_shared, cb_local)
            T.copy(
                dA_cumsum[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dA_cs_k_shared
            )
            T.copy(dA_cs_k_shared, dA_cs_k_local)
            for i, j in T.Parallel(block_M, block_K):
                cb_local[i, j] = cb_local[i, j] * T.exp2(
                    dA_cs_m_local[i] * p - dA_cs_k_local[j] * p
                )
            T.copy(dt[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dt_shared)
            T.copy(dt_shared, dt_local)
            for i, j in T.Parallel(block_M, block_K):
                cb_local[i, j] *= dt_local[j]
            for i, j in T.Parallel(block_M, block_K):
                cb_local[i, j] = T.if_then_else(
                    m_idx * block_M + i >= k * block_K + j, cb_local[i, j], 0
                )
            T.copy(
                x[
                    batch_idx,
                    chunk_idx * chunk + k * block_K : chunk_idx * chunk + (k + 1) * block_K,
                    bz,
                    n_idx * block_N : (n_idx + 1) * block_N,
                ],
                x_shared,
            )
            T.gemm(cb_local, x_shared, acc_o)
        D_local[0] = D[bz]
        T.copy(
            x[
                batch_idx,
                chunk_idx * chunk + m_idx * block_M : chunk_idx * chunk + (m_idx + 1) * block_M,
                bz,
                n_idx * block_N : (n_idx + 1) * block_N,
            ],
            x_residual_shared,
        )
        T.copy(x_residual_shared, x_residual_local)
        for i, j in T.Parallel(block_M, block_N):
            acc_o[i, j] += x_residual_local[i, j] * D_local[0]
        T.copy(
            acc_o,
            Output[
                batch_idx,
                chunk_idx * chunk + m_idx * block_M : chunk_idx * chunk + (m_idx + 1) * block_M,
                bz,
                n_idx * block_N : (n_idx + 1) * block_N,
            ],
        )
    return Output


def inputs_scan(rng, *, batch, nchunks, ngroups, chunk, nheads, headdim, dstate, **_):
    draw = lambda *shape: (rng.standard_normal(shape) / 2).astype(np.float16)  # noqa: E731
    S = nchunks * chunk
    decay = -np.cumsum(rng.uniform(0, 0.1, (batch, nheads, nchunks, chunk)), -1).astype(np.float16)
    return (
        draw(batch, nchunks, ngroups, chunk, chunk),
        draw(batch, S, nheads, headdim),
        rng.uniform(0, 1, decay.shape).astype(np.float16),
        decay,
        draw(batch, S, ngroups, dstate),
        draw(batch, nchunks, nheads, headdim, dstate),
        draw(nheads),
    )


def reference_scan(cb, x, dt, dA, C, states, D, *, chunk, nheads, ngroups, **_):
    out = np.empty_like(x)
    for b, n, h in np.ndindex(x.shape[0], dA.shape[2], nheads):
        rows, g, a = slice(n * chunk, (n + 1) * chunk), h // (nheads // ngroups), dA[b, h, n]
        w = np.tril(cb[b, n, g] * np.exp(a[:, None] - a) * dt[b, h, n])
        out[b, rows, h] = w @ x[b, rows, h] + D[h] * x[b, rows, h]
        out[b, rows, h] += np.exp(a)[:, None] * (C[b, rows, g] @ states[b, n, h].T)
    return (out,)


@tilelang.jit(out_idx=[-2, -1])
def gated_delta_net(S, H, DK, DV, chunk=16):
    """Delta rule with a decay, token by token: the state is a fragment, reads reduce it."""

    @T.prim_func
    def main(
        Q: T.Tensor([S, H, DK], "float32"),
        K: T.Tensor([S, H, DK], "float32"),
        V: T.Tensor([S, H, DV], "float32"),
        Beta: T.Tensor([S, H], "float32"),
        G: T.Tensor([S, H], "float32"),
        O: T.Tensor([S, H, DV], "float32"),
        State: T.Tensor([H, DK, DV], "float32"),
    ):
        with T.Kernel(H, threads=64) as h:
            state = T.alloc_fragment([DK, DV], "float32")
            weighted = T.alloc_fragment([DK, DV], "float32")
            read = T.alloc_fragment([DV], "float32")
            out = T.alloc_fragment([DV], "float32")
            k_row = T.alloc_shared([chunk, DK], "float32")
            q_row = T.alloc_shared([chunk, DK], "float32")
            T.clear(state)
            for c in T.serial(T.ceildiv(S, chunk)):
                T.copy(K[c * chunk : (c + 1) * chunk, h, :], k_row)
                T.copy(Q[c * chunk : (c + 1) * chunk, h, :], q_row)
                for r in T.serial(chunk):
                    t = c * chunk + r
                    if t < S:
                        gate = T.exp(G[t, h])
                        for i, j in T.Parallel(DK, DV):
                            state[i, j] = state[i, j] * gate
                            weighted[i, j] = state[i, j] * k_row[r, i]
                        T.reduce_sum(weighted, read, dim=0)
                        for j in T.Parallel(DV):
                            read[j] = (V[t, h, j] - read[j]) * Beta[t, h]
                        for i, j in T.Parallel(DK, DV):
                            state[i, j] += k_row[r, i] * read[j]
                            weighted[i, j] = state[i, j] * q_row[r, i]
                        T.reduce_sum(weighted, out, dim=0)
                        T.copy(out, O[t, h, :])
            T.copy(state, State[h, :, :])

    return main


def inputs_delta(rng, *, S, H, DK, DV, **_):
    k = rng.standard_normal((S, H, DK))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    f = np.float32
    return (
        rng.standard_normal((S, H, DK)).astype(f),
        k.astype(f),
        rng.standard_normal((S, H, DV)).astype(f),
        rng.uniform(0, 1, (S, H)).astype(f),
        -rng.uniform(0, 0.2, (S, H)).astype(f),
    )


def reference_delta(q, k, v, beta, g, *, S, H, DK, DV, **_):
    out, states = np.empty((S, H, DV)), np.zeros((H, DK, DV))
    for t, h in np.ndindex(S, H):
        states[h] *= np.exp(g[t, h])
        states[h] += np.outer(k[t, h], beta[t, h] * (v[t, h] - k[t, h] @ states[h]))
        out[t, h] = q[t, h] @ states[h]
    return out, states


@tilelang.jit(out_idx=[2, 3, 4])
def chunk_kkt_inverse(S, H, DK, chunk=32):
    """`(I + tril(beta K K^T))^-1` of each chunk, by forward substitution in shared memory."""
    NT = tilelang.cdiv(S, chunk)

    @T.prim_func
    def main(
        K: T.Tensor([S, H, DK], "float16"),
        Beta: T.Tensor([S, H], "float32"),
        A: T.Tensor([NT, H, chunk, chunk], "float32"),
        Inverse: T.Tensor([NT, H, chunk, chunk], "float32"),
        Count: T.Tensor([1], "int32"),
    ):
        with T.Kernel(NT, H, threads=128) as (c, h):
            tid = T.get_thread_binding()
            k = T.alloc_shared([chunk, DK], "float16")
            a = T.alloc_shared([chunk, chunk], "float32")
            inv = T.alloc_shared([chunk, chunk], "float32")
            acc = T.alloc_fragment([chunk, chunk], "float32")
            beta = T.alloc_fragment([chunk], "float32")
            T.copy(K[c * chunk : (c + 1) * chunk, h, :], k)
            T.copy(Beta[c * chunk : (c + 1) * chunk, h], beta)
            T.gemm(k, k, acc, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(chunk, chunk):
                acc[i, j] = T.if_then_else(i > j, acc[i, j] * beta[i], 0)
            T.copy(acc, a)
            T.copy(a, A[c, h, :, :])
            for i, j in T.Parallel(chunk, chunk):
                inv[i, j] = T.Select(i == j, T.float32(1), T.float32(0))
            T.sync_threads()
            if tid < chunk:
                for i in T.serial(1, chunk):
                    for j in T.serial(i):
                        inv[i, tid] -= a[i, j] * inv[j, tid]
            T.sync_threads()
            T.copy(inv, Inverse[c, h, :, :])
            if c == 0 and h == 0:
                Count[0] = NT * H

    return main


def inputs_kkt(rng, *, S, H, DK, **_):
    k = rng.standard_normal((S, H, DK))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    return k.astype(np.float16), rng.uniform(0, 1, (S, H)).astype(np.float32)


def reference_kkt(k, beta, *, S, H, chunk=32, **_):
    n = -(-S // chunk)
    pad = ((0, n * chunk - S), (0, 0))
    k, beta = np.pad(k, (*pad, (0, 0))), np.pad(beta, pad)
    a = np.empty((n, H, chunk, chunk))
    for c, h in np.ndindex(n, H):
        rows = slice(c * chunk, (c + 1) * chunk)
        a[c, h] = np.tril(beta[rows, h, None] * (k[rows, h] @ k[rows, h].T), -1)
    return a, np.linalg.inv(a + np.eye(chunk)), np.array([n * H])


@tilelang.jit
def linear_attention(Q, K, V, decay, chunk=32, BV=32):
    """Chunks in a serial loop, the state carried in registers and cast to multiply."""
    B, S, H, DK, DV = T.const("B S H DK DV")
    Q: T.Tensor([B, S, H, DK], T.float16)
    K: T.Tensor([B, S, H, DK], T.float16)
    V: T.Tensor([B, S, H, DV], T.float16)
    decay: T.Tensor([H], T.float32)
    O = T.empty([B, S, H, DV], T.float32)
    with T.Kernel(T.ceildiv(DV, BV), B * H, threads=128) as (i_v, i_bh):
        i_b, i_h = i_bh // H, i_bh % H
        q = T.alloc_shared([chunk, DK], T.float16)
        k = T.alloc_shared([chunk, DK], T.float16)
        v = T.alloc_shared([chunk, BV], T.float16)
        s = T.alloc_fragment([chunk, chunk], T.float32)
        s_shared = T.alloc_shared([chunk, chunk], T.float16)
        h = T.alloc_fragment([DK, BV], T.float32)
        h_shared = T.alloc_shared([DK, BV], T.float16)
        o = T.alloc_fragment([chunk, BV], T.float32)
        log_decay = T.alloc_var(T.float32)
        log_decay = decay[i_h]
        T.annotate_layout({q: tilelang.layout.make_swizzled_layout(q)})
        T.clear(h)
        for i in T.Pipelined(0, T.ceildiv(S, chunk), num_stages=1):
            rows = slice(i * chunk, (i + 1) * chunk)
            T.copy(Q[i_b, rows, i_h, 0:DK], q)
            T.copy(K[i_b, rows, i_h, 0:DK], k)
            T.copy(V[i_b, rows, i_h, i_v * BV : (i_v + 1) * BV], v)
            T.gemm(q, k, s, transpose_B=True, clear_accum=True)
            for row, col in T.Parallel(chunk, chunk):
                s_shared[row, col] = T.if_then_else(
                    row >= col, s[row, col] * T.exp2((row - col) * log_decay), 0
                )
            T.copy(h, h_shared)
            T.gemm(q, h_shared, o, clear_accum=True)
            for row, d in T.Parallel(chunk, BV):
                o[row, d] *= T.exp2((row + 1) * log_decay)
            T.gemm(s_shared, v, o)
            T.copy(o, O[i_b, rows, i_h, i_v * BV : (i_v + 1) * BV])
            for row, d in T.Parallel(chunk, BV):
                v[row, d] = v[row, d] * T.exp2((chunk - row - 1) * log_decay)
            for row, d in T.Parallel(DK, BV):
                h[row, d] *= T.exp2(chunk * log_decay)
            T.gemm(k, v, h, transpose_A=True)
    return O


def inputs_linear_attention(rng, *, B, S, H, DK, DV, **_):
    draw = lambda d: (rng.standard_normal((B, S, H, d)) / 2).astype(np.float16)  # noqa: E731
    return draw(DK), draw(DK), draw(DV), np.linspace(-0.2, -0.01, H).astype(np.float32)


def reference_linear_attention(q, k, v, decay, **_):
    S = q.shape[1]
    gap = np.arange(S)[:, None] - np.arange(S)
    out = np.empty(v.shape)
    for b, h in np.ndindex(q.shape[0], q.shape[2]):
        w = np.tril(q[b, :, h] @ k[b, :, h].T * 2.0 ** np.minimum(gap * decay[h], 60))
        out[b, :, h] = w @ v[b, :, h]
    return (out,)
