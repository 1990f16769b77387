"""Rows once more: fused norms, Welford's moments, long softmaxes, losses with gaps, dropout."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[4, 5, 6])
def add_norm_quant(M, N, eps=1e-5, block_M=2, fp8=False):
    """Residual plus input, layer norm, and eight bits with a scale per row, all in one."""
    out_dtype, limit = ("float8_e4m3fn", 448.0) if fp8 else ("int8", 127.0)

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "bfloat16"),
        R: T.Tensor((M, N), "bfloat16"),
        W: T.Tensor((N,), "bfloat16"),
        B: T.Tensor((N,), "bfloat16"),
        Sum: T.Tensor((M, N), "bfloat16"),
        Q: T.Tensor((M, N), out_dtype),
        S: T.Tensor((M, 1), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as i:
            x_s = T.alloc_shared((block_M, N), "bfloat16")
            r_s = T.alloc_shared((block_M, N), "bfloat16")
            x = T.alloc_fragment((block_M, N), "float32")
            sq = T.alloc_fragment((block_M, N), "float32")
            mean = T.alloc_fragment((block_M, 1), "float32")
            var = T.alloc_fragment((block_M, 1), "float32")
            amax = T.alloc_fragment((block_M, 1), "float32")
            T.copy(X[i * block_M, 0], x_s)
            T.copy(R[i * block_M, 0], r_s)
            for r, c in T.Parallel(block_M, N):
                x[r, c] = T.cast(x_s[r, c], "float32") + T.cast(r_s[r, c], "float32")
                r_s[r, c] = x[r, c]
            T.copy(r_s, Sum[i * block_M, 0])
            T.reduce_sum(x, mean, dim=1)
            for r, c in T.Parallel(block_M, N):
                x[r, c] -= mean[r, 0] / N
                sq[r, c] = x[r, c] * x[r, c]
            T.reduce_sum(sq, var, dim=-1)
            for r, c in T.Parallel(block_M, N):
                x[r, c] = x[r, c] / T.sqrt(var[r, 0] / N + eps) * W[c] + B[c]
            T.reduce_absmax(x, amax, dim=1)
            for r, c in T.Parallel(block_M, N):
                x[r, c] = x[r, c] * (limit / T.max(amax[r, 0], 1e-8))
                if i * block_M + r < M:
                    if fp8:
                        Q[i * block_M + r, c] = T.cast(x[r, c], out_dtype)
                    else:
                        Q[i * block_M + r, c] = T.cast(T.round(x[r, c]), out_dtype)
            for r in T.Parallel(block_M):
                amax[r, 0] = T.max(amax[r, 0], 1e-8) / limit
            T.copy(amax, S[i * block_M : (i + 1) * block_M, 0:1])

    return main


def inputs_add_norm(rng, *, M, N, **_):
    import torch

    draw = lambda *s: torch.from_numpy(rng.standard_normal(s).astype(np.float32)).bfloat16()  # noqa: E731
    return draw(M, N), draw(M, N), draw(N), draw(N)


def reference_add_norm(x, r, w, b, *, eps=1e-5, fp8=False, **_):
    total = x + r
    y = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(1, keepdims=True) + eps) * w + b
    s = np.abs(y).max(1, keepdims=True) / (448 if fp8 else 127)
    return total, y / s if fp8 else np.rint(y / s), s


def dequantised(outputs):
    """Rounding may differ at ties: codes are compared through their scale, coarsely."""
    total, q, s = (np.asarray(x, np.float64) for x in outputs)
    return total, np.round(q * s * 4) / 4, s


@tilelang.jit
def welford(X, threads=64):
    """Mean and variance in one pass: each thread its moments, merged through shared memory."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    mean_out = T.empty((M,), T.float32)
    var_out = T.empty((M,), T.float32)
    with T.Kernel(M, threads=threads) as row:
        tx = T.get_thread_binding()
        means = T.alloc_shared((threads,), T.float32)
        m2s = T.alloc_shared((threads,), T.float32)
        counts = T.alloc_shared((threads,), T.float32)
        mean = T.alloc_var(T.float32, init=0.0)
        m2 = T.alloc_var(T.float32, init=0.0)
        count = T.alloc_var(T.float32, init=0.0)
        for c in T.serial(T.ceildiv(N - tx, threads)):
            x = X[row, c * threads + tx]
            count += 1.0
            delta = x - mean
            mean += delta / count
            m2 += delta * (x - mean)
        means[tx] = mean
        m2s[tx] = m2
        counts[tx] = count
        for step in range(threads.bit_length() - 1):
            half = threads >> (step + 1)
            T.sync_threads()
            if tx < half:
                total = counts[tx] + counts[tx + half]
                gap = means[tx + half] - means[tx]
                if total > 0.0:
                    m2s[tx] += m2s[tx + half] + gap * gap * counts[tx] * counts[tx + half] / total
                    means[tx] += gap * counts[tx + half] / total
                counts[tx] = total
        if tx == 0:
            mean_out[row] = means[0]
            var_out[row] = m2s[0] / counts[0]
    return mean_out, var_out


def inputs_welford(rng, *, M, N, **_):
    return ((rng.standard_normal((M, N)) * 0.5 + 30).astype(np.float32),)


def reference_welford(x, **_):
    return x.mean(1), x.var(1)


@tilelang.jit(out_idx=-1)
def long_softmax(rows, columns, chunk=64, block_M=2, log=False):
    """A row larger than registers: statistics of chunks in shared memory, then a second walk."""
    chunks = tilelang.cdiv(columns, chunk)
    accum = T.float32

    @T.prim_func
    def main(X: T.Tensor((rows, columns), T.float16), Y: T.Tensor((rows, columns), T.float16)):
        with T.Kernel(T.ceildiv(rows, block_M), threads=64) as bx:
            tile = T.alloc_fragment((block_M, chunk), accum)
            tops = T.alloc_shared((block_M, chunks), accum)
            sums = T.alloc_shared((block_M, chunks), accum)
            top = T.alloc_fragment((block_M,), accum)
            part = T.alloc_fragment((block_M,), accum)
            for c in T.serial(chunks):
                for i, j in T.Parallel(block_M, chunk):
                    tile[i, j] = T.if_then_else(
                        c * chunk + j < columns,
                        X[bx * block_M + i, c * chunk + j],
                        T.min_value(accum),
                    )
                T.reduce_max(tile, top, dim=1)
                for i, j in T.Parallel(block_M, chunk):
                    tile[i, j] = T.exp(tile[i, j] - top[i])
                T.reduce_sum(tile, part, dim=1)
                T.copy(top, tops[:, c])
                T.copy(part, sums[:, c])
            T.reduce_max(tops, top, dim=1)
            for i, c in T.Parallel(block_M, chunks):
                sums[i, c] *= T.exp(tops[i, c] - top[i])
            T.reduce_sum(sums, part, dim=1)
            for c in T.serial(chunks):
                T.copy(X[bx * block_M, c * chunk], tile)
                for i, j in T.Parallel(block_M, chunk):
                    if log:
                        tile[i, j] = tile[i, j] - top[i] - T.log(part[i])
                    else:
                        tile[i, j] = T.exp(tile[i, j] - top[i]) / part[i]
                T.copy(tile, Y[bx * block_M, c * chunk])

    return main


def inputs_long(rng, *, rows, columns, **_):
    return ((rng.standard_normal((rows, columns)) * 2).astype(np.float16),)


def reference_long(x, *, log=False, **_):
    y = x - x.max(1, keepdims=True)
    y = y - np.log(np.exp(y).sum(1, keepdims=True))
    return (y if log else np.exp(y),)


@tilelang.jit
def cross_entropy_mean(logits, labels, z_loss=1e-3, ignore_index=-1, block_V=64, threads=64):
    """The mean over labels that count, added up with atomics, and the gradient in place."""
    rows, V = T.const("rows V")
    logits: T.Tensor((rows, V), T.bfloat16)
    labels: T.Tensor((rows,), T.int32)
    lse_out = T.empty((rows,), T.float32)
    total = T.empty((1,), T.float32)
    counted = T.empty((1,), T.int32)

    with T.Kernel(1, threads=32):
        total[0] = 0
        counted[0] = 0
    with T.Kernel(rows, threads=threads) as r:
        label = labels[r]
        x = T.alloc_fragment((block_V,), T.float32)
        e = T.alloc_fragment((block_V,), T.float32)
        m = T.alloc_fragment((1,), T.float32)
        m_new = T.alloc_fragment((1,), T.float32)
        s = T.alloc_fragment((1,), T.float32)
        s_new = T.alloc_fragment((1,), T.float32)
        if label == ignore_index:
            lse_out[r] = 0.0
        else:
            T.fill(m, -T.infinity(T.float32))
            T.fill(s, 0)
            for v in T.serial(T.ceildiv(V, block_V)):
                for j in T.Parallel(block_V):
                    x[j] = T.if_then_else(
                        v * block_V + j < V,
                        T.cast(logits[r, v * block_V + j], T.float32),
                        -T.infinity(T.float32),
                    )
                T.reduce_max(x, m_new, dim=0)
                m_new[0] = T.max(m_new[0], m[0])
                for j in T.Parallel(block_V):
                    e[j] = T.exp(x[j] - m_new[0])
                T.reduce_sum(e, s_new, dim=0)
                s[0] = s[0] * T.exp(m[0] - m_new[0]) + s_new[0]
                m[0] = m_new[0]
            lse_out[r] = m[0] + T.log(s[0])
    with T.Kernel(rows, threads=threads) as r:
        label = labels[r]
        tx = T.get_thread_binding(0)
        if label != ignore_index and tx == 0:
            lse = lse_out[r]
            loss = lse - logits[r, label].astype(T.float32) + z_loss * lse * lse
            T.atomic_add(total[0], loss)
            T.atomic_add(counted[0], 1)
    return lse_out, total, counted


def inputs_entropy(rng, *, rows, V, **_):
    import torch

    labels = rng.integers(0, V, rows).astype(np.int32)
    labels[::3] = -1
    x = (rng.standard_normal((rows, V)) * 2).astype(np.float32)
    return torch.from_numpy(x).bfloat16(), torch.from_numpy(labels)


def reference_entropy(x, labels, *, z_loss=1e-3, **_):
    used = labels >= 0
    top = x.max(1)
    lse = np.where(used, top + np.log(np.exp(x - top[:, None]).sum(1)), 0)
    loss = lse - x[np.arange(len(x)), np.maximum(labels, 0)] + z_loss * lse * lse
    return lse, loss[used].sum(keepdims=True), np.array([used.sum()])


@T.macro
def philox(c0, c1, k0, k1, out):
    """Seven rounds on two words of a counter (the paper's function, fewer rounds)."""
    x = T.alloc_var("uint32")
    y = T.alloc_var("uint32")
    key = T.alloc_var("uint32")
    x = c0
    y = c1
    key = k0
    for _ in T.unroll(7):
        wide = T.cast(x, "uint64") * T.uint64(0xD256D193)
        high = T.cast(wide >> T.uint64(32), "uint32")
        low = T.cast(wide & T.uint64(0xFFFFFFFF), "uint32")
        x = high ^ key ^ y
        y = low
        key = key + T.uint32(0x9E3779B9)
    out[0] = x ^ k1
    out[1] = y


def dropout_add(rate=0.25, block=128, dtype="float16"):
    """Bits of a counter, an addition after, and the mask as one byte for each element."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(
        X: T.Tensor((n,), dtype),
        R: T.Tensor((n,), dtype),
        seed: T.uint32,
        offset: T.uint32,
        Y: T.Tensor((n,), dtype),
        Mask: T.Tensor((n,), "uint8"),
    ):
        with T.Kernel(T.ceildiv(n, block), threads=block // 2) as bx:
            tx = T.get_thread_binding()
            bits = T.alloc_local((2,), "uint32")
            pair = bx * (block // 2) + tx
            philox(T.cast(pair, "uint32") + offset, T.uint32(7), seed, T.uint32(0), bits)
            for v in T.serial(2):
                at = 2 * pair + v
                if at < n:
                    keep = T.cast(bits[v] >> 8, "float32") * (1.0 / (1 << 24)) >= rate
                    Mask[at] = T.cast(keep, "uint8")
                    Y[at] = T.if_then_else(keep, X[at] * (1.0 / (1.0 - rate)), 0) + R[at]

    return kernel


def inputs_dropout(rng, *, N, **_):
    f = np.float16
    x, r = rng.standard_normal(N).astype(f), rng.standard_normal(N).astype(f)
    return x, r, 1234, 99, np.zeros(N, f), np.zeros(N, np.uint8)


def reference_dropout(x, r, seed, offset, y, mask, *, rate=0.25, **_):
    w = 2**32
    pairs = np.arange(-(-len(x) // 2), dtype=np.uint64)
    a, b = [(int(p) + offset) % w for p in pairs], [7] * len(pairs)
    for i in range(len(pairs)):
        key = seed
        for _round in range(7):
            wide = a[i] * 0xD256D193
            a[i], b[i] = (wide // w) ^ key ^ b[i], wide % w
            key = (key + 0x9E3779B9) % w
    bits = np.stack([a, b], 1).reshape(-1)[: len(x)]
    keep = (bits >> 8) / 2**24 >= rate
    return np.where(keep, x / (1 - rate), 0) + r, keep.astype(np.uint8)
