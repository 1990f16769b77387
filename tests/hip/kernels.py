"""Kernels of the HIP tests, with float64 references; sizes are odd on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import tilelang.language as T

Array = np.ndarray[Any, Any]
NUMPY = {
    "float16": np.float16, "float32": np.float32, "int8": np.int8, "int32": np.int32,
    "bfloat16": ml_dtypes.bfloat16,
}  # fmt: skip


def scaled(N: int = 1000, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            for i in T.Parallel(256):
                B[bx * 256 + i] = T.tanh(A[bx * 256 + i] * 2.0) + 1.0

    return main


def row_sums(M: int = 33, N: int = 301, dtype: str = "float32", threads: int = 128) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=threads) as bx:
            tile = T.alloc_fragment((4, N), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(A[bx * 4, 0], tile)
            T.reduce_sum(tile, total, dim=1)
            T.copy(total, B[bx * 4])

    return main


def column_max(M: int = 70, N: int = 45) -> Any:
    """Lines that lie in several waves: they meet in shared memory."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=256):
            tile = T.alloc_fragment((M, N), "float32")
            most = T.alloc_fragment((N,), "float32")
            T.copy(A, tile)
            T.reduce_max(tile, most, dim=0)
            T.copy(most, B)

    return main


def softmax(M: int = 37, N: int = 200, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as bx:
            x = T.alloc_fragment((8, N), "float32")
            most = T.alloc_fragment((8,), "float32")
            total = T.alloc_fragment((8,), "float32")
            T.copy(A[bx * 8, 0], x)
            T.reduce_max(x, most, dim=1)
            for i, j in T.Parallel(8, N):
                x[i, j] = T.exp(x[i, j] - most[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(8, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[bx * 8, 0])

    return main


def product(
    M: int = 100, N: int = 90, K: int = 70, dtype: str = "float16", sums: str = "float32",
    tile: tuple[int, int, int] = (64, 64, 32), threads: int = 256, stages: int = 1,
    transpose: tuple[bool, bool] = (False, False),
) -> Any:  # fmt: skip
    bM, bN, bK = tile
    ta, tb = transpose
    a_shape, b_shape = ((K, M) if ta else (M, K)), ((N, K) if tb else (K, N))
    a_tile, b_tile = ((bK, bM) if ta else (bM, bK)), ((bN, bK) if tb else (bK, bN))

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), sums)):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=threads) as (bx, by):
            a = T.alloc_shared(a_tile, dtype)
            b = T.alloc_shared(b_tile, dtype)
            c = T.alloc_fragment((bM, bN), sums)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=stages):
                if ta:
                    T.copy(A[k * bK, by * bM], a)
                else:
                    T.copy(A[by * bM, k * bK], a)
                if tb:
                    T.copy(B[bx * bN, k * bK], b)
                else:
                    T.copy(B[k * bK, bx * bN], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C[by * bM, bx * bN])

    return main


def attention(L: int = 96, D: int = 64, block: int = 32) -> Any:
    """The scores of one product are an operand of the next, in the registers where they are."""

    @T.prim_func
    def main(
        Q: T.Tensor((L, D), "float16"), K: T.Tensor((L, D), "float16"),
        V: T.Tensor((L, D), "float16"), O: T.Tensor((L, D), "float16"),
    ):  # fmt: skip
        with T.Kernel(L // block, threads=64) as bx:
            q = T.alloc_shared((block, D), "float16")
            k = T.alloc_shared((block, D), "float16")
            v = T.alloc_shared((block, D), "float16")
            s = T.alloc_fragment((block, block), "float32")
            p = T.alloc_fragment((block, block), "float16")
            o = T.alloc_fragment((block, D), "float32")
            most = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            here = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(Q[bx * block, 0], q)
            T.clear(o)
            T.fill(total, 0)
            T.fill(most, -1e30)
            for n in T.serial(L // block):
                T.copy(K[n * block, 0], k)
                T.copy(V[n * block, 0], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                T.copy(most, before)
                T.reduce_max(s, most, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    s[i, j] = T.exp(s[i, j] - most[i])
                T.reduce_sum(s, here, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp(before[i] - most[i]) + here[i]
                for i, j in T.Parallel(block, D):
                    o[i, j] = o[i, j] * T.exp(before[i] - most[i])
                T.copy(s, p)
                T.gemm(p, v, o)
            for i, j in T.Parallel(block, D):
                o[i, j] = o[i, j] / total[i]
            T.copy(o, O[bx * block, 0])

    return main


def lanes(width: int = 64) -> Any:
    """What only a wave of 64 lanes gets right."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            B[tx] = T.warp_reduce_sum(A[tx]) + T.shfl_xor(A[tx], 32, width=64)

    return main


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, what it gives, and the error allowed."""

    name: str
    make: Callable[..., Any]
    inputs: Callable[[np.random.Generator], tuple[Array, ...]]
    reference: Callable[..., Array]
    allowed: float
    mfma: int = 0  # matrix instructions in one turn of its loop, for gfx942

    def __str__(self) -> str:
        return self.name


def _normal(*shapes: tuple[int, ...], dtype: str) -> Callable[..., tuple[Array, ...]]:
    def inputs(rng: np.random.Generator) -> tuple[Array, ...]:
        if dtype == "int8":
            return tuple(rng.integers(-8, 8, s).astype(np.int8) for s in shapes)
        return tuple(rng.standard_normal(s).astype(NUMPY[dtype]) for s in shapes)

    return inputs


def _softmax(a: Array) -> Array:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _product(
    name: str, mfma: int, allowed: float = 1e-5, transpose: tuple[bool, bool] = (False, False),
    **how: Any,
) -> Case:  # fmt: skip
    M, N, K = (how.get(k, d) for k, d in (("M", 100), ("N", 90), ("K", 70)))
    dtype = how.get("dtype", "float16")
    shapes = (K, M) if transpose[0] else (M, K), (N, K) if transpose[1] else (K, N)

    def reference(a: Array, b: Array) -> Array:
        return np.asarray((a.T if transpose[0] else a) @ (b.T if transpose[1] else b))

    return Case(
        name, lambda: product(transpose=transpose, **how), _normal(*shapes, dtype=dtype),
        reference, allowed, mfma,
    )  # fmt: skip


CASES = (
    Case("scaled", scaled, _normal((1000,), dtype="float16"), lambda a: np.tanh(a * 2) + 1, 1e-3),
    Case("scaled_bfloat16", lambda: scaled(dtype="bfloat16"), _normal((1000,), dtype="bfloat16"),
         lambda a: np.tanh(a * 2) + 1, 8e-3),
    Case("row_sums", row_sums, _normal((33, 301), dtype="float32"), lambda a: a.sum(1), 1e-5),
    # Fewer threads than a wave has lanes, and a wave that is not full.
    *(Case(f"row_sums_{threads}", partial(row_sums, threads=threads),
           _normal((33, 301), dtype="float32"), lambda a: a.sum(1), 1e-5) for threads in (32, 96)),
    Case("column_max", column_max, _normal((70, 45), dtype="float32"), lambda a: a.max(0), 0.0),
    Case("softmax", softmax, _normal((37, 200), dtype="float16"), _softmax, 1e-3),
    Case("softmax_bfloat16", lambda: softmax(dtype="bfloat16"),
         _normal((37, 200), dtype="bfloat16"), _softmax, 8e-3),
    Case("lanes", lanes, _normal((128,), dtype="float32"),
         lambda a: a.reshape(2, 64).sum(1).repeat(64)
         + a.reshape(2, 2, 32)[:, ::-1].reshape(-1), 1e-5),
    Case("attention", attention, _normal(*[(96, 64)] * 3, dtype="float16"),
         lambda q, k, v: _softmax(q @ k.T) @ v, 1e-3, 16),
    # A warp has one block of 32 x 32, in four steps of 8.
    _product("product", 4),
    _product("product_two_stages", 4, stages=2),
    _product("product_pipelined", 4, stages=3),
    _product("product_nt", 4, transpose=(False, True)),
    _product("product_tn", 4, transpose=(True, False)),
    _product("product_bfloat16", 4, dtype="bfloat16"),
    _product("product_float32", 16, dtype="float32"),
    _product("product_int8", 2, 0.0, dtype="int8", sums="int32"),
    # 16 x 16 blocks, where the tile is no multiple of 32.
    _product("product_16", 2, tile=(16, 48, 32), threads=64 * 3, M=50, N=100, K=64),
)  # fmt: skip
GOLDEN = ("scaled", "row_sums", "softmax", "product")


def result_of(case: Case, arrays: tuple[Array, ...]) -> tuple[Array, Array]:
    """Memory for the result, and the right one."""
    want = case.reference(*(a.astype(np.float64) for a in arrays))
    function = case.make()
    dtype = str(function.function.params[-1].dtype)
    return np.zeros(want.shape, NUMPY[dtype]), want
