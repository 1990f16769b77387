"""What training needs besides products: losses, rotary, embeddings, optimisers, dropout."""

import itertools

import numpy as np

import tilelang
import tilelang.language as T


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@tilelang.jit
def cross_entropy(logits, labels, smoothing=0.1, ignore_index=-100, block_V=64):
    """Loss and its gradient in one kernel, with label smoothing and an ignored label."""
    M, V = T.const("M, V")
    logits: T.Tensor((M, V), T.float32)
    labels: T.Tensor((M,), T.int64)
    loss = T.empty((M,), T.float32)
    grad = T.empty((M, V), T.float32)
    with T.Kernel(M, threads=64) as row:
        tile = T.alloc_fragment((block_V,), T.float32)
        exps = T.alloc_fragment((block_V,), T.float32)
        most = T.alloc_fragment((1,), T.float32)
        most_before = T.alloc_fragment((1,), T.float32)
        total = T.alloc_fragment((1,), T.float32)
        part = T.alloc_fragment((1,), T.float32)
        plain = T.alloc_fragment((1,), T.float32)
        T.clear(total)
        T.clear(plain)
        T.fill(most, T.min_value(T.float32))
        for v in T.serial(T.ceildiv(V, block_V)):
            for j in T.Parallel(block_V):
                tile[j] = (
                    logits[row, v * block_V + j] if v * block_V + j < V else -T.infinity(T.float32)
                )
                exps[j] = logits[row, v * block_V + j] if v * block_V + j < V else 0.0
            T.copy(most, most_before)
            T.reduce_max(tile, most, dim=0, clear=False)
            T.reduce_sum(exps, plain, dim=0, clear=False)
            for j in T.Parallel(block_V):
                exps[j] = T.exp(tile[j] - most[0])
            T.reduce_sum(exps, part, dim=0)
            total[0] = total[0] * T.exp(most_before[0] - most[0]) + part[0]
        label = labels[row]
        used = label != ignore_index
        lse = T.log(total[0]) + most[0]
        if used:
            loss[row] = lse - (1 - smoothing) * logits[row, label] - smoothing / V * plain[0]
        else:
            loss[row] = 0
        for v in T.Parallel(V):
            p = T.exp(logits[row, v] - lse)
            target = T.if_then_else(v == label, 1.0 - smoothing, 0.0) + smoothing / V
            grad[row, v] = T.if_then_else(used, p - target, 0.0)
    return loss, grad


def inputs_ce(rng, *, M, V, **_):
    labels = rng.integers(0, V, M)
    labels[2] = -100
    return (rng.standard_normal((M, V)) * 2).astype(np.float32), labels.astype(np.int64)


def reference_ce(x, labels, *, V, smoothing=0.1, **_):
    used = labels >= 0
    target = np.full(x.shape, smoothing / V)
    target[np.arange(len(x)), np.maximum(labels, 0)] += 1 - smoothing
    p = softmax(x)
    return np.where(used, -(target * np.log(p)).sum(1), 0), np.where(used[:, None], p - target, 0)


@tilelang.jit
def rotary(X, cos, sin, positions, interleaved=False):
    """Both conventions; positions are looked up, and may be any."""
    S, H, D, L = T.const("S, H, D, L")
    X: T.Tensor((S, H, D), T.float16)
    cos: T.Tensor((L, D // 2), T.float32)
    sin: T.Tensor((L, D // 2), T.float32)
    positions: T.Tensor((S,), T.int64)
    half = D // 2
    with T.Kernel(S, threads=32) as s:
        pos = positions[s]
        for h, d in T.Parallel(H, half):
            left, right = (2 * d, 2 * d + 1) if interleaved else (d, d + half)
            a = T.alloc_var("float32")
            b = T.alloc_var("float32")
            a = X[s, h, left]
            b = X[s, h, right]
            X[s, h, left] = a * cos[pos, d] - b * sin[pos, d]
            X[s, h, right] = b * cos[pos, d] + a * sin[pos, d]


def inputs_rotary(rng, *, S, H, D, L, **_):
    angle = np.outer(np.arange(L), 1.0 / 100 ** (np.arange(D // 2) / (D // 2)))
    return (
        rng.standard_normal((S, H, D)).astype(np.float16),
        np.cos(angle).astype(np.float32),
        np.sin(angle).astype(np.float32),
        rng.integers(0, L, S),
    )


def reference_rotary(x, cos, sin, at, *, interleaved, **_):
    half = x.shape[2] // 2
    out = np.empty_like(x)
    a, b = (
        (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    )
    c, s = cos[at][:, None], sin[at][:, None]
    out[..., a], out[..., b] = x[..., a] * c - x[..., b] * s, x[..., b] * c + x[..., a] * s
    return (out,)


@tilelang.jit
def embedding_bag(table, tokens, offsets, mode="mean", block_D=32):
    """Sums or means of looked-up rows; bags of any length, an empty one gives zeros."""
    V, D, N, B = T.const("V, D, N, B")
    table: T.Tensor((V, D), T.float16)
    tokens: T.Tensor((N,), T.int64)
    offsets: T.Tensor((B + 1,), T.int32)
    out = T.empty((B, D), T.float32)
    with T.Kernel(B, T.ceildiv(D, block_D), threads=32) as (b, bd):
        acc = T.alloc_fragment((block_D,), T.float32)
        T.clear(acc)
        count = offsets[b + 1] - offsets[b]
        for t in range(count):
            row = tokens[offsets[b] + t]
            for d in T.Parallel(block_D):
                acc[d] += table[row, bd * block_D + d]
        if mode == "mean":
            for d in T.Parallel(block_D):
                acc[d] = acc[d] / T.max(count, 1)
        T.copy(acc, out[b, bd * block_D])
    return out


def inputs_bag(rng, *, V, D, N, B, **_):
    cuts = np.sort(rng.integers(0, N, B - 2))
    return (
        rng.standard_normal((V, D)).astype(np.float16),
        rng.integers(0, V, N),
        np.concatenate([[0], cuts, cuts[-1:], [N]]).astype(np.int32),
    )


def reference_bag(table, tokens, offsets, *, mode="mean", **_):
    out = []
    for a, b in itertools.pairwise(offsets):
        rows = table[tokens[a:b]].sum(0)
        out.append(rows / max(b - a, 1) if mode == "mean" else rows)
    return (np.stack(out),)


@tilelang.jit
def adamw(p, g, m, v, lr, step, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01, block=256):
    """In place, for a tensor of any length; rate and step are run-time scalars."""
    n = T.dynamic("n")
    p: T.Tensor((n,), T.float32)
    g: T.Tensor((n,), T.float16)
    m: T.Tensor((n,), T.float32)
    v: T.Tensor((n,), T.float32)
    lr: T.float32
    step: T.int32
    with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
        fix1 = 1.0 - T.pow(T.float32(beta1), T.cast(step, "float32"))
        fix2 = 1.0 - T.pow(T.float32(beta2), T.cast(step, "float32"))
        for t in T.Parallel(block):
            i = bx * block + t
            if i < n:
                grad = T.cast(g[i], T.float32)
                m[i] = beta1 * m[i] + (1 - beta1) * grad
                v[i] = beta2 * v[i] + (1 - beta2) * grad * grad
                p[i] = p[i] * (1 - lr * decay) - lr * (m[i] / fix1) / (T.sqrt(v[i] / fix2) + eps)


def inputs_adamw(rng, *, n, **_):
    f = np.float32
    return (
        rng.standard_normal(n).astype(f),
        rng.standard_normal(n).astype(np.float16),
        rng.standard_normal(n).astype(f),
        rng.uniform(0, 1, n).astype(f),
        0.01,
        3,
    )


def reference_adamw(p, g, m, v, lr, step, **_):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    update = m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return p * (1 - lr * 0.01) - lr * update, m, v


def mix(x, seed):
    """A hash of 32 bits, of expressions or of NumPy numbers."""
    x = x ^ seed
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = x ^ (x >> shift)
        x = x * T.uint32(factor) if not isinstance(x, np.ndarray) else (x * np.uint32(factor))
    return x ^ (x >> 16)


@tilelang.jit
def dropout(X, seed, rate=0.25, block=128):
    N = T.const("N")
    X: T.Tensor((N,), T.float32)
    seed: T.uint32
    Y = T.empty((N,), T.float32)
    kept = T.empty((N,), T.bool)
    threshold = int(rate * 2**32)
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            at = bx * block + i
            keep = mix(T.cast(at, T.uint32), seed) >= T.uint32(threshold)
            Y[at] = T.if_then_else(keep, X[at] / (1.0 - rate), 0.0)
            kept[at] = keep
    return Y, kept


def inputs_dropout(rng, *, N, **_):
    return rng.standard_normal(N).astype(np.float32), 12345


def reference_dropout(x, seed, *, N, rate=0.25, **_):
    keep = mix(np.arange(N, dtype=np.uint32), np.uint32(seed)) >= int(rate * 2**32)
    return np.where(keep, x / (1 - rate), 0), keep
