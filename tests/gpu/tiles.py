"""Tiles for the GPU lowering: layouts, scopes, sizes and kinds that meet awkwardly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def reduce(
    shape: tuple[int, ...], dim: int, kind: str, scope: str, dtype: str, threads: int,
    clear: bool = True,
) -> Any:  # fmt: skip
    kept = tuple(n for d, n in enumerate(shape) if d != dim) or (1,)
    reduce_ = getattr(T, f"reduce_{kind}")
    onto = {} if clear else {"clear": False}

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(kept, dtype)):
        with T.Kernel(1, threads=threads) as bx:
            x = T.alloc_shared(shape, dtype) if scope == "shared" else T.alloc_fragment(
                shape, dtype)  # fmt: skip
            y = T.alloc_fragment(kept, dtype)
            T.copy(A, x)
            T.fill(y, 3)
            reduce_(x, y, dim=dim, **onto)
            T.copy(y, B)

    return main


def reduce_reference(
    a: Any, shape: tuple[int, ...], dim: int, kind: str, clear: bool = True, **_: Any
) -> tuple[Any, ...]:
    functions: dict[str, Callable[..., Any]] = {
        "sum": np.sum, "max": np.max, "min": np.min,
        "abssum": lambda x, axis: np.abs(x).sum(axis=axis),
        "absmax": lambda x, axis: np.abs(x).max(axis=axis),
        "bitxor": np.bitwise_xor.reduce, "bitand": np.bitwise_and.reduce,
        "bitor": np.bitwise_or.reduce,
    }  # fmt: skip
    found = np.atleast_1d(functions[kind](a, axis=dim))
    if not clear:
        combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
        found = combine(found, 3)
    return (found,)


def scan(shape: tuple[int, ...], dim: int, reverse: bool, scope: str, threads: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=threads) as bx:
            x = T.alloc_shared(shape, "float32") if scope == "shared" else T.alloc_fragment(
                shape, "float32")  # fmt: skip
            T.copy(A, x)
            T.cumsum(x, dim=dim, reverse=reverse)
            T.copy(x, B)

    return main


def scan_reference(a: Any, dim: int, reverse: bool, **_: Any) -> tuple[Any, ...]:
    found = np.flip(np.cumsum(np.flip(a, dim), axis=dim), dim) if reverse else np.cumsum(a, dim)
    return (found,)


def columns(M: int, N: int, block: int) -> Any:
    """A column-major tensor: unit stride in its first dimension."""

    @T.prim_func
    def main(
        A: T.StridedTensor((M, N), (1, M), "float16"), B: T.Tensor((M, N), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            x = T.alloc_shared((block, block), "float16")
            T.copy(A[by * block, bx * block], x)
            T.copy(x, B[by * block, bx * block])

    return main


def softmax(M: int, N: int, rows: int, threads: int, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
            x = T.alloc_fragment((rows, N), "float32")
            peak = T.alloc_fragment((rows,), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.copy(A[bx * rows, 0], x)
            T.reduce_max(x, peak, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] = T.exp(x[i, j] - peak[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, N):
                x[i, j] /= total[i]
            T.copy(x, B[bx * rows, 0])

    return main


def softmax_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True),)


def histogram(N: int, bins: int, threads: int) -> Any:
    """Data-dependent places in shared memory, atomics, and a copy out."""

    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((bins,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            counts = T.alloc_shared((bins,), "int32")
            T.fill(counts, 0)
            for i in T.Parallel(N):
                T.atomic_add(counts[A[i]], 1)
            T.copy(counts, B)

    return main


def gather(N: int, M: int) -> Any:
    """A fragment read where data says."""

    @T.prim_func
    def main(
        A: T.Tensor((N,), "float32"), I: T.Tensor((M,), "int32"), B: T.Tensor((M,), "float32")
    ):
        with T.Kernel(1, threads=64) as bx:
            x = T.alloc_fragment((N,), "float32")
            T.copy(A, x)
            for i in T.Parallel(M):
                B[i] = x[I[i]]

    return main


def reversed_rows(N: int, M: int) -> Any:
    """Fragments whose elements cross threads: written in one order, read in another."""

    @T.prim_func
    def main(A: T.Tensor((N, M), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(1, threads=96) as bx:
            x = T.alloc_fragment((N, M), "float32")
            y = T.alloc_fragment((N, M), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(N, M):
                y[i, j] = x[N - 1 - i, M - 1 - j]
            T.copy(y, B)

    return main


def single_elements(N: int) -> Any:
    """Plain statements on tiles outside of loops."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N + 1,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            x = T.alloc_fragment((N,), "float32")
            s = T.alloc_shared((2,), "float32")
            T.copy(A, x)
            x[3] = x[5] + 1.0
            s[0] = x[7] * 2.0
            s[1] = s[0] + x[3]
            T.copy(x, B[0:N])
            B[N] = s[1]

    return main


def reducer(M: int, N: int, threads: int, op: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            x = T.alloc_fragment((M, N), "float32")
            y = T.alloc_fragment((M,), "float32")
            acc = T.alloc_reducer((M,), "float32", op=op)
            T.copy(A, x)
            T.reducer_init(acc)
            for i, j in T.Parallel(M, N):
                T.reducer_update(acc[i], x[i, j])
            T.finalize_reducer(acc, y)
            T.copy(y, B)

    return main


def two_dimensional_block(N: int) -> Any:
    """Threads along two axes, shuffles and votes."""

    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32"), C: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, 128), threads=(32, 4)) as bx:
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            v = T.alloc_var("int32")
            v = A[bx * 128 + ty * 32 + tx]
            B[bx * 128 + ty * 32 + tx] = T.shfl_down(v, 1) + v
            x = T.alloc_fragment((128,), "int32")
            for i in T.Parallel(128):
                x[i] = A[bx * 128 + i] * 3
            for i in T.Parallel(128):
                C[bx * 128 + i] = x[i]

    return main


def dynamic_rows(block: int) -> Any:
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 96), "float16"), B: T.Tensor((M, 96), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_shared((block, 96), "float16")
            y = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block, 0], x)
            T.reduce_sum(x, y, dim=1)
            for i, j in T.Parallel(block, 96):
                B[bx * block + i, j] = T.cast(x[i, j], "float32") + y[i]

    return main


def short_rows(N: int, dtype: str) -> Any:
    """Copies that run ahead, of fewer words than there are threads."""

    @T.prim_func
    def main(A: T.Tensor((24, N), dtype), B: T.Tensor((24, N), dtype)):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_shared((N,), dtype)
            for k in T.Pipelined(24, num_stages=3):
                T.copy(A[k, 0], x)
                for i in T.Parallel(N):
                    B[k, i] = x[N - 1 - i]

    return main


def _normal(*shapes: str) -> Callable[..., tuple[Any, ...]]:
    def inputs(rng: np.random.Generator, **values: Any) -> tuple[Any, ...]:
        dtype = values.get("dtype", "float32")
        shape = values.get("shape") or tuple(values[n] for n in shapes)
        if dtype.startswith("int"):
            return (rng.integers(-100, 100, shape).astype(dtype),)
        return (rng.standard_normal(shape).astype(dtype),)

    return inputs


def _case(
    name: str, make: Any, inputs: Any, reference: Any, out_idx: tuple[int, ...] = (1,),
    sizes: dict[str, Any] | None = None, precision: str | None = None, **params: Any,
) -> KernelCase:  # fmt: skip
    return KernelCase(
        name=f"gpu_{name}", row="gpu", tier=1, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=params, sizes=sizes or {}, out_idx=out_idx,
        targets=("cuda:sm_80",), precision=(precision,) * len(out_idx),
    )  # fmt: skip


def _reduces() -> list[KernelCase]:
    found = []
    for shape, threads in (((64, 64), 128), ((37, 53), 128), ((5, 1000), 256), ((300,), 64),
                           ((4, 6, 40), 96), ((24, 50), 48), ((9, 40), 33)):  # fmt: skip
        for dim in range(len(shape)):
            for scope in ("shared", "fragment"):
                for kind, dtype in (("sum", "float32"), ("max", "float16"), ("bitxor", "int32")):
                    name = f"reduce_{kind}_{'x'.join(map(str, shape))}_{dim}_{scope}"
                    found.append(_case(
                        name, reduce, _normal(), reduce_reference, shape=shape, dim=dim, kind=kind,
                        scope=scope, dtype=dtype, threads=threads,
                    ))  # fmt: skip
    for kind in ("min", "abssum", "absmax"):
        found.append(_case(f"reduce_{kind}", reduce, _normal(), reduce_reference, shape=(16, 100),
                           dim=1, kind=kind, scope="fragment", dtype="float32",
                           threads=128))  # fmt: skip
    for kind in ("sum", "max", "min"):
        found.append(_case(f"reduce_{kind}_onto", reduce, _normal(), reduce_reference,
                           shape=(16, 64), dim=0, kind=kind, scope="fragment", dtype="float32",
                           threads=128, clear=False))  # fmt: skip
    return found


def _gather_inputs(rng: np.random.Generator, N: int, M: int, **_: Any) -> tuple[Any, ...]:
    return rng.standard_normal(N).astype(np.float32), rng.integers(0, N, M).astype(np.int32)


def _column_inputs(rng: np.random.Generator, M: int, N: int, **_: Any) -> tuple[Any, ...]:
    return (np.asfortranarray(rng.standard_normal((M, N)).astype(np.float16)),)


def _single_reference(a: Any, N: int, **_: Any) -> tuple[Any, ...]:
    x = a.copy()
    x[3] = x[5] + 1
    return (np.append(x, x[7] * 2 + x[3]),)


def _shuffle_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    rows = a.reshape(-1, 32)
    below = np.concatenate([rows[:, 1:], rows[:, -1:]], axis=1)
    return (rows + below).ravel(), a * 3


CASES: tuple[KernelCase, ...] = (
    *_reduces(),
    *(
        _case(f"scan_{'x'.join(map(str, shape))}_{dim}_{'back' if reverse else 'on'}_{scope}", scan,
              _normal(), scan_reference, shape=shape, dim=dim, reverse=reverse, scope=scope,
              threads=128)
        for shape, dim in (((64, 32), 0), ((33, 70), 1), ((500,), 0))
        for reverse in (False, True)
        for scope in ("shared", "fragment")
    ),
    _case("columns", columns, _column_inputs, lambda a, **_: (a,), M=96, N=80, block=32),
    *(_case(f"softmax_{dtype}_{rows}", softmax, _normal("M", "N"), softmax_reference, M=50, N=N,
            rows=rows, threads=128, dtype=dtype)
      for dtype, N, rows in (("float32", 256, 4), ("float16", 512, 1), ("float32", 100, 8))),
    _case("histogram", histogram, lambda rng, N, bins, **_: (
        rng.integers(0, bins, N).astype(np.int32),), lambda a, bins, **_: (
        np.bincount(a, minlength=bins),), N=1000, bins=37, threads=128),
    _case("gather", gather, _gather_inputs, lambda a, i, **_: (a[i],), (2,), N=200, M=333),
    _case("reversed_rows", reversed_rows, _normal("N", "M"),
          lambda a, **_: (a[::-1, ::-1],), N=12, M=40),
    _case("single_elements", single_elements, _normal("N"), _single_reference, N=40),
    *(_case(f"reducer_{op}", reducer, _normal("M", "N"),
            lambda a, op, **_: (getattr(np, op)(a, axis=1),), M=6, N=50, threads=threads, op=op)
      for op, threads in (("sum", 128), ("max", 128), ("min", 128))),
    _case("reducer_of_48_threads", reducer, _normal("M", "N"),
          lambda a, op, **_: (getattr(np, op)(a, axis=1),), M=6, N=50, threads=48, op="sum"),
    _case("two_dimensional_block", two_dimensional_block,
          lambda rng, N, **_: (rng.integers(-9, 9, N).astype(np.int32),), _shuffle_reference,
          (1, 2), N=256),
    *(_case(f"short_rows_{N}_{dtype}", short_rows, lambda rng, N, dtype, **_: (
        rng.integers(-100, 100, (24, N)).astype(dtype),), lambda a, **_: (a[:, ::-1],), N=N,
        dtype=dtype) for N, dtype in ((32, "float16"), (2, "float16"), (20, "int8"))),
    _case("dynamic_rows", dynamic_rows, lambda rng, M, **_: (
        rng.standard_normal((M, 96)).astype(np.float16),), lambda a, **_: (
        a + a.sum(axis=1, keepdims=True),), sizes={"M": 77}, block=32),
)  # fmt: skip
