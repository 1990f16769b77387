"""Scans and orders: running sums, sorting, selecting, counting, put together by hand."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def row_cumsum(X, block_N=32, exclusive=False):
    """Running sums of long rows, tile by tile, with a carry."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    Y = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=64) as row:
        tile = T.alloc_shared((block_N,), T.float32)
        sums = T.alloc_shared((block_N,), T.float32)
        carry = T.alloc_var(T.float32, init=0.0)
        for c in T.serial(T.ceildiv(N, block_N)):
            T.copy(X[row, c * block_N : (c + 1) * block_N], tile)
            T.cumsum(tile, sums, dim=0)
            for j in T.Parallel(block_N):
                if c * block_N + j < N:
                    if exclusive:
                        Y[row, c * block_N + j] = carry + sums[j] - tile[j]
                    else:
                        Y[row, c * block_N + j] = carry + sums[j]
            carry += sums[block_N - 1]
    return Y


def inputs_rows(rng, *, M, N, **_):
    return (rng.standard_normal((M, N)).astype(np.float32),)


def reference_cumsum(x, *, exclusive=False, **_):
    return (np.cumsum(x, 1) - (x if exclusive else 0),)


@tilelang.jit(out_idx=[1])
def device_scan(N, block=64):
    """Sums of blocks, a scan of the sums, and an addition: three launches of one function."""
    blocks = (N + block - 1) // block

    @T.prim_func
    def main(
        X: T.Tensor((N,), "int32"),
        Y: T.Tensor((N,), "int32"),
        Sums: T.Tensor((blocks,), "int32"),
    ):
        with T.Kernel(blocks, threads=block) as bx:
            part = T.alloc_shared((block,), "int32")
            tx = T.get_thread_binding()
            part[tx] = X[bx * block + tx] if bx * block + tx < N else 0
            offset = T.alloc_var("int32", init=1)
            while offset < block:
                before = T.alloc_var("int32", init=0)
                T.sync_threads()
                if tx >= offset:
                    before = part[tx - offset]
                T.sync_threads()
                part[tx] += before
                offset = offset * 2
            T.sync_threads()
            if bx * block + tx < N:
                Y[bx * block + tx] = part[tx]
            if tx == block - 1:
                Sums[bx] = part[tx]
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_fragment((blocks,), "int32")
            T.copy(Sums, total)
            T.cumsum(total)
            T.copy(total, Sums)
        with T.Kernel(blocks, threads=block) as bx:
            if bx > 0:
                for i in T.Parallel(block):
                    if bx * block + i < N:
                        Y[bx * block + i] += Sums[bx - 1]

    return main


def inputs_device_scan(rng, *, N, block=64, **_):
    return rng.integers(-50, 50, N).astype(np.int32), np.zeros(-(-N // block), np.int32)


def reference_device_scan(x, _sums, **_):
    return (np.cumsum(x),)


@tilelang.jit
def bitonic_sort(Keys, Values, n=64, descending=False):
    """Each row of a power of two in shared memory: a thread for each pair."""
    rows, length = T.const("rows, length")
    Keys: T.Tensor((rows, length), T.float32)
    Values: T.Tensor((rows, length), T.int32)
    last = -T.infinity(T.float32) if descending else T.infinity(T.float32)
    with T.Kernel(rows, threads=n // 2) as row:
        k = T.alloc_shared((n,), T.float32)
        v = T.alloc_shared((n,), T.int32)
        tid = T.get_thread_binding(0)
        for i in T.Parallel(n):
            k[i] = T.if_then_else(i < length, Keys[row, i], last)
            v[i] = T.if_then_else(i < length, Values[row, i], -1)
        stages = n.bit_length() - 1
        for stage in range(1, stages + 1):
            for step in range(stage - 1, -1, -1):
                T.sync_threads()
                stride = 1 << step
                left = (tid // stride) * (2 * stride) + tid % stride
                right = left + stride
                up = ((left >> stage) & 1) == (1 if descending else 0)
                if (k[left] > k[right]) == up:
                    kl = k[left]
                    vl = v[left]
                    k[left] = k[right]
                    v[left] = v[right]
                    k[right] = kl
                    v[right] = vl
        T.sync_threads()
        for i in T.Parallel(n):
            if i < length:
                Keys[row, i] = k[i]
                Values[row, i] = v[i]


def inputs_sort(rng, *, rows, length, **_):
    keys = rng.permuted(np.tile(np.arange(length), (rows, 1)), axis=1).astype(np.float32) - 7
    return keys, np.tile(np.arange(length, dtype=np.int32), (rows, 1))


def reference_sort(keys, values, *, descending=False, **_):
    at = np.argsort(-keys if descending else keys, axis=1)
    return np.take_along_axis(keys, at, 1), np.take_along_axis(values, at, 1)


@tilelang.jit
def radix_sort(X, bits=8, N=128):
    """Least bit first: zeros keep their order before ones, by a running sum of flags."""
    B, L = T.const("B, L")
    X: T.Tensor((B, L), "uint32")
    Y = T.empty((B, L), "uint32")
    with T.Kernel(B, threads=128) as b:
        now = T.alloc_shared([N], "uint32")
        after = T.alloc_shared([N], "uint32")
        zeros = T.alloc_shared([N], "int32")
        for i in T.Parallel(N):
            now[i] = T.if_then_else(i < L, X[b, i], T.max_value("uint32"))
        for bit in T.serial(bits):
            for i in T.Parallel(N):
                zeros[i] = T.cast(1 - ((now[i] >> bit) & 1), "int32")
            T.cumsum(zeros, dim=0)
            for i in T.Parallel(N):
                is_one = (now[i] >> bit) & 1
                before = zeros[i]
                where = T.if_then_else(is_one == 0, before - 1, zeros[N - 1] + i - before)
                after[where] = now[i]
            T.copy(after, now)
        T.copy(now[0:L], Y[b, 0:L])
    return Y


def inputs_radix(rng, *, B, L, bits=8, **_):
    return (rng.integers(0, 2**bits, (B, L)).astype(np.uint32),)


def reference_radix(x, **_):
    return (np.sort(x, 1),)


@tilelang.jit(out_idx=[1])
def histogram(N, bins, value_dtype="uint8", block=256, per_thread=4):
    """Counts of a block in shared memory, then one atomic per bin."""

    @T.prim_func
    def main(X: T.Tensor((N,), value_dtype), H: T.Tensor((bins,), "int32")):
        with T.Kernel(T.ceildiv(bins, 128), threads=128) as b:
            for i in T.Parallel(128):
                if b * 128 + i < bins:
                    H[b * 128 + i] = 0
        with T.Kernel(T.ceildiv(N, block * per_thread), threads=block) as bx:
            counts = T.alloc_shared((bins,), "int32")
            T.clear(counts)
            T.sync_threads()
            for r in T.serial(per_thread):
                for i in T.Parallel(block):
                    at = (bx * per_thread + r) * block + i
                    if at < N:
                        T.atomic_add(counts[T.cast(X[at], "int32") % bins], 1)
            T.sync_threads()
            for i in T.Parallel(bins):
                if counts[i] != 0:
                    T.atomic_add(H[i], counts[i], memory_order="relaxed")

    return main


def inputs_histogram(rng, *, N, **_):
    return (rng.integers(0, 256, N).astype(np.uint8),)


def reference_histogram(x, *, bins, **_):
    return (np.bincount(x.astype(np.int64) % bins, minlength=bins),)


@tilelang.jit
def topk_rows(X, k=3, block_M=4):
    """The k largest of each row, one after the other: the largest, its place, and it is gone."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float32)
    values = T.empty((M, k), T.float32)
    places = T.empty((M, k), T.int32)
    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x = T.alloc_fragment((block_M, N), T.float32)
        at = T.alloc_fragment((block_M, N), T.int32)
        best = T.alloc_fragment((block_M,), T.float32)
        where = T.alloc_fragment((block_M,), T.int32)
        T.copy(X[bx * block_M, 0], x)
        for r in T.serial(k):
            T.reduce_max(x, best, dim=1, clear=True)
            for i, j in T.Parallel(block_M, N):
                at[i, j] = T.if_then_else(x[i, j] == best[i], j, N)
            T.reduce_min(at, where, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.if_then_else(j == where[i], -T.infinity(T.float32), x[i, j])
            for i in T.Parallel(block_M):
                if bx * block_M + i < M:
                    values[bx * block_M + i, r] = best[i]
                    places[bx * block_M + i, r] = where[i]
    return values, places


def reference_topk(x, *, k=3, **_):
    at = np.argsort(-x, 1, kind="stable")[:, :k]
    return np.take_along_axis(x, at, 1), at


@T.macro
def better(a_value, a_place, b_value, b_place):
    return (b_value > a_value) | ((b_value == a_value) & (b_place < a_place))


@tilelang.jit
def argmax(X, threads=64):
    """Each thread its part of a row, then a tree in shared memory."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float16)
    out = T.empty((M,), T.int64)
    with T.Kernel(M, threads=threads) as row:
        tx = T.get_thread_binding()
        values = T.alloc_shared((threads,), T.float32)
        places = T.alloc_shared((threads,), T.int32)
        value = T.alloc_var(T.float32)
        place = T.alloc_var(T.int32)
        value = -T.infinity(T.float32)
        place = N
        for j in T.serial(T.ceildiv(N, threads)):
            col = j * threads + tx
            if col < N:
                if X[row, col] > value:
                    value = X[row, col]
                    place = col
        values[tx] = value
        places[tx] = place
        for level in T.unroll(threads.bit_length() - 1):
            half = threads >> (level + 1)
            T.sync_threads()
            if tx < half:
                if better(values[tx], places[tx], values[tx + half], places[tx + half]):
                    values[tx] = values[tx + half]
                    places[tx] = places[tx + half]
        if tx == 0:
            out[row] = places[0]
    return out


def inputs_argmax(rng, *, M, N, **_):
    return (rng.integers(-20, 20, (M, N)).astype(np.float16),)


def reference_argmax(x, **_):
    return (np.argmax(x, 1),)


@tilelang.jit
def top_p(logits, p, draw, N=256, threads=128):
    """Nucleus sampling: sorted in shared memory, summed up, cut at `p`, and one number drawn."""
    B, V = T.const("B, V")
    logits: T.Tensor((B, V), T.float32)
    p: T.Tensor((B,), T.float32)
    draw: T.Tensor((B,), T.float32)
    token = T.empty((B,), T.int32)
    kept = T.empty((B,), T.int32)
    with T.Kernel(B, threads=threads) as b:
        value = T.alloc_shared((N,), T.float32)
        index = T.alloc_shared((N,), T.int32)
        sums = T.alloc_shared((N,), T.float32)
        inside = T.alloc_fragment((N,), T.int32)
        number = T.alloc_fragment((1,), T.int32)
        top = T.alloc_fragment((1,), T.float32)
        for i in T.Parallel(N):
            value[i] = T.if_then_else(i < V, logits[b, i], -T.infinity(T.float32))
            index[i] = i
        T.reduce_max(value, top, dim=0)
        for i in T.Parallel(N):
            value[i] = T.exp(value[i] - top[0])
        size = T.alloc_var(T.int32, init=2)
        while size <= N:
            stride = T.alloc_var(T.int32)
            stride = size // 2
            while stride > 0:
                for t in T.Parallel(N // 2):
                    i = 2 * t - (t & (stride - 1))
                    j = i + stride
                    a = value[i]
                    c = value[j]
                    ia = index[i]
                    ic = index[j]
                    swap = (a < c) == ((i & size) == 0)
                    value[i] = T.if_then_else(swap, c, a)
                    value[j] = T.if_then_else(swap, a, c)
                    index[i] = T.if_then_else(swap, ic, ia)
                    index[j] = T.if_then_else(swap, ia, ic)
                stride = stride // 2
            size = size * 2
        T.cumsum(value, sums)
        for i in T.Parallel(N):
            inside[i] = T.if_then_else(sums[i] - value[i] < p[b] * sums[N - 1], 1, 0)
        T.reduce_sum(inside, number, dim=0)
        kept[b] = number[0]
        mark = draw[b] * sums[number[0] - 1]
        for i in T.Parallel(N):
            before = T.if_then_else(i == 0, T.float32(0), sums[T.max(i - 1, 0)])
            if before <= mark and mark < sums[i] and i < number[0]:
                token[b] = index[i]
    return token, kept


def inputs_top_p(rng, *, B, V, **_):
    f = np.float32
    return (
        (rng.standard_normal((B, V)) * 2).astype(f),
        rng.uniform(0.5, 0.95, B).astype(f),
        rng.uniform(0, 0.999, B).astype(f),
    )


def reference_top_p(logits, p, draw, **_):
    tokens, kept = [], []
    for x, limit, u in zip(logits, p, draw, strict=True):
        at = np.argsort(-x)
        w = np.exp(x[at] - x.max())
        sums = np.cumsum(w)
        n = int((sums - w < limit * sums[-1]).sum())
        kept.append(n)
        tokens.append(at[np.searchsorted(sums, u * sums[n - 1], side="right")])
    return np.array(tokens), np.array(kept)
