"""No matrix products: transposes, reductions of many axes, butterflies, wavefronts."""

import numpy as np

import tilelang
import tilelang.language as T


@tilelang.jit
def transpose_swizzled(X, block=32):
    """Through a shared tile whose layout the author gives, written by rows, read by columns."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.float16)
    Y = T.empty((N, M), T.float16)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        tile = T.alloc_shared((block, block), T.float16)
        turned = T.alloc_fragment((block, block), T.float16)
        T.annotate_layout({tile: T.Layout((block, block), lambda i, j: [i, j ^ i])})
        T.copy(X[by * block, bx * block], tile)
        for i, j in T.Parallel(block, block):
            turned[i, j] = tile[j, i]
        T.copy(turned, Y[bx * block, by * block])
    return Y


def inputs_matrix(rng, *, M, N, **_):
    return (rng.standard_normal((M, N)).astype(np.float16),)


def reference_transpose(x, **_):
    return (x.T,)


@tilelang.jit(out_idx=[1])
def permute_0213(A, B, C, D, dtype="float32", tile=8):
    """(A, B, C, D) to (A, C, B, D): tiles of two axes, the last one whole."""

    @T.prim_func
    def main(X: T.Tensor((A, B, C, D), dtype), Y: T.Tensor((A, C, B, D), dtype)):
        with T.Kernel(T.ceildiv(C, tile), T.ceildiv(B, tile), A, threads=128) as (bc, bb, a):
            t = T.alloc_shared((tile, tile, D), dtype)
            T.copy(X[a, bb * tile : (bb + 1) * tile, bc * tile : (bc + 1) * tile, :], t)
            for c, b, d in T.Parallel(tile, tile, D):
                if bc * tile + c < C and bb * tile + b < B:
                    Y[a, bc * tile + c, bb * tile + b, d] = t[b, c, d]

    return main


def inputs_permute(rng, *, A, B, C, D, **_):
    return (rng.standard_normal((A, B, C, D)).astype(np.float32),)


def reference_permute(x, **_):
    return (x.transpose(0, 2, 1, 3),)


@tilelang.jit
def reduce_axes(X, block=4):
    """Of four axes: sums over the last, largest over the third, smallest absolute over both."""
    A, B, C, D = T.const("A, B, C, D")
    X: T.Tensor((A, B, C, D), T.float32)
    last = T.empty((A, B, C), T.float32)
    third = T.empty((A, B, D), T.float32)
    both = T.empty((A, B), T.float32)
    with T.Kernel(A, T.ceildiv(B, block), threads=128) as (a, bb):
        x = T.alloc_fragment((block, C, D), T.float32)
        s = T.alloc_fragment((block, C), T.float32)
        m = T.alloc_fragment((block, D), T.float32)
        least = T.alloc_fragment((block, 1), T.float32)
        T.copy(X[a, bb * block : (bb + 1) * block, :, :], x)
        T.reduce_sum(x, s, dim=2)
        T.reduce_max(x, m, dim=1)
        for i, j, k in T.Parallel(block, C, D):
            x[i, j, k] = T.abs(x[i, j, k])
        flat = T.reshape(x, (block, C * D))
        T.reduce_min(flat, least, dim=1)
        T.copy(s, last[a, bb * block : (bb + 1) * block, :])
        T.copy(m, third[a, bb * block, 0])
        for i in T.Parallel(block):
            if bb * block + i < B:
                both[a, bb * block + i] = least[i, 0]
    return last, third, both


def reference_axes(x, **_):
    return x.sum(3), x.max(2), np.abs(x).min((2, 3))


@tilelang.jit(out_idx=[3, 4])
def fft(batch, n=64, inverse=False):
    """Radix 2 in shared memory: bits reversed on the way in, a butterfly for each thread."""
    bits = n.bit_length() - 1
    sign = -1.0 if inverse else 1.0

    @T.prim_func
    def main(
        Re: T.Tensor((batch, n), "float32"),
        Im: T.Tensor((batch, n), "float32"),
        Turns: T.Tensor((2, n // 2), "float32"),
        OutRe: T.Tensor((batch, n), "float32"),
        OutIm: T.Tensor((batch, n), "float32"),
    ):
        with T.Kernel(batch, threads=n // 2) as b:
            re = T.alloc_shared((n,), "float32")
            im = T.alloc_shared((n,), "float32")
            for i in T.Parallel(n):
                at = T.alloc_var("int32", init=0)
                for k in T.serial(bits):
                    at = (at << 1) | ((i >> k) & 1)
                re[at] = Re[b, i]
                im[at] = Im[b, i]
            for level in T.serial(bits):
                half = 1 << level
                for t in T.Parallel(n // 2):
                    j = t % half
                    lo = (t // half) * 2 * half + j
                    hi = lo + half
                    wr, wi = Turns[0, j * (n // 2 // half)], sign * Turns[1, j * (n // 2 // half)]
                    xr = wr * re[hi] - wi * im[hi]
                    xi = wr * im[hi] + wi * re[hi]
                    yr, yi = re[lo], im[lo]
                    re[hi], im[hi] = yr - xr, yi - xi
                    re[lo], im[lo] = yr + xr, yi + xi
            for i in T.Parallel(n):
                OutRe[b, i] = re[i] / n if inverse else re[i]
                OutIm[b, i] = im[i] / n if inverse else im[i]

    return main


def inputs_fft(rng, *, batch, n=64, **_):
    f = np.float32
    angle = -2 * np.pi * np.arange(n // 2) / n
    return (
        rng.standard_normal((batch, n)).astype(f),
        rng.standard_normal((batch, n)).astype(f),
        np.stack([np.cos(angle), np.sin(angle)]).astype(f),
    )


def reference_fft(re, im, _turns, *, inverse=False, **_):
    x = re + 1j * im
    y = np.fft.ifft(x) if inverse else np.fft.fft(x)
    return y.real, y.imag


@tilelang.jit
def levenshtein(A, B, len_a, len_b, threads=64):
    """Edit distance of pairs: one diagonal after the other, three of them in shared memory."""
    pairs, LA, LB = T.const("pairs, LA, LB")
    A: T.Tensor((pairs, LA), T.uint8)
    B: T.Tensor((pairs, LB), T.uint8)
    len_a: T.Tensor((pairs,), T.int32)
    len_b: T.Tensor((pairs,), T.int32)
    out = T.empty((pairs,), T.int32)
    with T.Kernel(pairs, threads=threads) as p:
        tid = T.get_thread_binding(0)
        diagonals = T.alloc_shared((3, LA + 1), T.int32)
        na, nb = len_a[p], len_b[p]
        for d in T.serial(na + nb + 1):
            for r in T.serial(T.ceildiv(LA + 1, threads)):
                i = r * threads + tid
                j = d - i
                inside = i <= na and j >= 0 and j <= nb
                best = T.alloc_var(T.int32, init=0)
                if inside:
                    if i == 0 or j == 0:
                        best = i + j
                    else:
                        cost = T.if_then_else(A[p, i - 1] == B[p, j - 1], 0, 1)
                        best = diagonals[(d + 1) % 3, i - 1] + cost
                        best = T.min(best, diagonals[(d + 2) % 3, i - 1] + 1)
                        best = T.min(best, diagonals[(d + 2) % 3, i] + 1)
                if inside:
                    diagonals[d % 3, i] = best
            T.sync_threads()
        if tid == 0:
            out[p] = diagonals[(na + nb) % 3, na]
    return out


def inputs_edit(rng, *, pairs, LA, LB, **_):
    return (
        rng.integers(0, 4, (pairs, LA)).astype(np.uint8),
        rng.integers(0, 4, (pairs, LB)).astype(np.uint8),
        rng.integers(0, LA + 1, pairs).astype(np.int32),
        rng.integers(1, LB + 1, pairs).astype(np.int32),
    )


def reference_edit(a, b, na, nb, **_):
    out = []
    for x, y, n, m in zip(a, b, na, nb, strict=True):
        row = np.arange(m + 1)
        for i in range(n):
            new = [i + 1]
            for j in range(m):
                new.append(min(new[-1] + 1, row[j + 1] + 1, row[j] + (x[i] != y[j])))
            row = np.array(new)
        out.append(row[m])
    return (np.array(out),)


@tilelang.jit
def smooth(A, steps=4, tile=16):
    """Steps of a five-point stencil on a tile and a halo, of which less is right each time."""
    H, W = T.const("H, W")
    A: T.Tensor((H, W), T.float32)
    B = T.empty((H, W), T.float32)
    side = tile + 2 * steps
    with T.Kernel(T.ceildiv(W, tile), T.ceildiv(H, tile), threads=256) as (bx, by):
        now = T.alloc_shared((side, side), T.float32)
        then = T.alloc_shared((side, side), T.float32)
        y0, x0 = by * tile - steps, bx * tile - steps
        for i, j in T.Parallel(side, side):
            y = T.min(T.max(y0 + i, 0), H - 1)
            x = T.clamp(x0 + j, 0, W - 1)
            now[i, j] = A[y, x]
        for _ in T.serial(steps):
            for i, j in T.Parallel(side, side):
                if 0 < i < side - 1 and 0 < j < side - 1:
                    y, x = y0 + i, x0 + j
                    up = now[T.if_then_else(y > 0, i - 1, i), j]
                    down = now[T.if_then_else(y < H - 1, i + 1, i), j]
                    left = now[i, T.if_then_else(x > 0, j - 1, j)]
                    right = now[i, T.if_then_else(x < W - 1, j + 1, j)]
                    then[i, j] = 0.5 * now[i, j] + 0.125 * (up + down + left + right)
                else:
                    then[i, j] = now[i, j]
            T.copy(then, now)
        for i, j in T.Parallel(tile, tile):
            if by * tile + i < H and bx * tile + j < W:
                B[by * tile + i, bx * tile + j] = now[i + steps, j + steps]
    return B


def inputs_smooth(rng, *, H, W, **_):
    return (rng.standard_normal((H, W)).astype(np.float32),)


def reference_smooth(a, *, steps=4, **_):
    for _step in range(steps):
        p = np.pad(a, 1, mode="edge")
        near = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        a = 0.5 * a + 0.125 * near
    return (a,)


@tilelang.jit
def cholesky(A):
    """One small matrix a block, column after column; threads take rows."""
    batch, N = T.const("batch, N")
    A: T.Tensor((batch, N, N), T.float32)
    L = T.empty((batch, N, N), T.float32)
    with T.Kernel(batch, threads=64) as b:
        tid = T.get_thread_binding()
        m = T.alloc_shared((N, N), T.float32)
        T.copy(A[b, 0:N, 0:N], m)
        for k in T.serial(N):
            if tid == 0:
                m[k, k] = T.sqrt(m[k, k])
            if tid > k and tid < N:
                m[tid, k] /= m[k, k]
            for i, j in T.Parallel(N, N):
                if j > k and i >= j:
                    m[i, j] -= m[i, k] * m[j, k]
        for i, j in T.Parallel(N, N):
            L[b, i, j] = T.if_then_else(i >= j, m[i, j], 0)
    return L


def inputs_cholesky(rng, *, batch, N, **_):
    x = rng.standard_normal((batch, N, 2 * N))
    return ((x @ x.transpose(0, 2, 1) / N).astype(np.float32),)


def reference_cholesky(a, **_):
    return (np.linalg.cholesky(a),)
