"""Complaints about extents: one element, eight lanes, either axis, and sizes known at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def rows_of_one(rows: int, columns: int) -> Any:
    """24: a copy with an extent of 1 into shared memory, registers and back."""

    @T.prim_func
    def main(A: T.Tensor((5, columns), "float32"), B: T.Tensor((5, columns), "float32")):
        with T.Kernel(T.ceildiv(5, rows), threads=32) as bx:
            shared = T.alloc_shared((rows, columns), "float32")
            local = T.alloc_fragment((rows, columns), "float32")
            T.copy(A[bx * rows : (bx + 1) * rows, :], shared)
            T.copy(shared, local)
            T.copy(local, B[bx * rows, 0])

    return main


def two_outputs(block: int, stages: int) -> Any:
    """36: a product of tensors whose sizes are known at run time, with two results."""
    M, N, K = T.dynamic("M, N, K")

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"), D: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])
            for i, j in T.Parallel(block, block):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, D[by * block, bx * block])

    return main


def running_sums(dim: int) -> Any:
    """45: a running sum in shared memory."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(A, tile)
            T.cumsum(tile, dim=dim)
            T.copy(tile, B)

    return main


def lanes(count: int, dtype: str, threads: int) -> Any:
    """52: a vector of more lanes than one access takes."""

    @T.prim_func
    def main(A: T.Tensor((count * threads,), dtype), B: T.Tensor((count * threads,), dtype)):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            for v in T.vectorized(count):
                B[tx * count + v] = A[tx * count + v] + 1

    return main


def _normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Any:
    def inputs(rng: np.random.Generator, **_: Any) -> tuple[Any, ...]:
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return inputs


def _products(a: Any, b: Any, **_: Any) -> tuple[Any, ...]:
    return a @ b, np.maximum(a @ b, 0)


def _case(
    name: str, make: Any, inputs: Any, reference: Any, out_idx: tuple[int, ...] = (1,),
    sizes: dict[str, Any] | None = None, **params: Any,
) -> KernelCase:  # fmt: skip
    return KernelCase(
        name=f"complaint_{name}", row="gpu", tier=1, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=params, sizes=sizes or {}, out_idx=out_idx,
        targets=("cuda:sm_80",),
    )  # fmt: skip


CASES: tuple[KernelCase, ...] = (
    *(_case(f"24_{rows}x{columns}", rows_of_one, _normal((5, columns)), lambda a, **_: (a,),
            rows=rows, columns=columns)
      for rows, columns in ((1, 1), (1, 8), (4, 1), (1, 128))),
    *(_case(f"36_{m}x{n}x{k}_{stages}", two_outputs, _normal((m, k), (k, n), dtype="float16"),
            _products, (2, 3), {"M": m, "N": n, "K": k}, block=32, stages=stages)
      for m, n, k, stages in ((45, 33, 70, 2), (64, 64, 32, 3), (1, 100, 257, 1))),
    *(_case(f"45_{dim}", running_sums, _normal((32, 64)), lambda a, dim: (np.cumsum(a, dim),),
            dim=dim)
      for dim in (0, 1)),
    *(_case(f"52_{count}_{dtype}", lanes, _normal((count * 32,), dtype=dtype),
            lambda a, **_: (a + 1,), count=count, dtype=dtype, threads=32)
      for count, dtype in ((8, "float32"), (8, "float16"), (16, "float32"), (8, "float64"),
                           (4, "float64"))),
)  # fmt: skip
