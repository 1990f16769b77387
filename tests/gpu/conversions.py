"""Kernels of complaints whose tiles change their layout on the way, or meet at awkward sizes.

The compiler once refused them, or was wrong: they compile, and what they give is compared with
NumPy on a device. Names begin with the number in the collected list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def two_gemms(threads: int, policy: int, N: int) -> Any:
    @T.prim_func
    def main(
        Q: T.Tensor((64, 64), "float16"), K: T.Tensor((N, 64), "float16"),
        O: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            Q_s = T.alloc_shared((64, 64), "float16")
            K_s = T.alloc_shared((N, 64), "float16")
            scores = T.alloc_fragment((64, N), "float32")
            cast = T.alloc_fragment((64, N), "float16")
            out = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, Q_s)
            T.copy(K, K_s)
            T.clear(scores)
            T.gemm(Q_s, K_s, scores, transpose_B=True, policy=policy)
            for i, j in T.Parallel(64, N):
                cast[i, j] = scores[i, j] * 0.125
            T.clear(out)
            T.gemm(cast, K_s, out, policy=policy)
            T.copy(out, O)

    return main


def _attended(q: Any, k: Any, **_: Any) -> tuple[Any, ...]:
    return (((q @ k.T) * 0.125) @ k,)


def blocks_of_a_row() -> Any:
    @T.prim_func
    def main(X: T.Tensor((16, 448), "int32"), Y: T.Tensor((16, 14), "int32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_fragment((16, 14), "int32")
            x = T.alloc_fragment((16, 448), "int32")
            T.copy(X, x)
            T.clear(total)
            for i, j in T.Parallel(16, 14):
                for k in T.serial(32):
                    total[i, j] += x[i, j * 32 + k]
            T.copy(total, Y)

    return main


def width(n: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((n,), "float32")
            for i in T.Parallel(n):
                x[i] = A[i] * 2
            T.copy(x, B)

    return main


def two_pipelines(first: int, second: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((512, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(8, num_stages=first):
                T.copy(A[k * 64, 0], s)
                for i, j in T.Parallel(64, 64):
                    acc[i, j] += s[i, j]
            for k in T.Pipelined(8, num_stages=second):
                T.copy(A[k * 64, 0], s)
                for i, j in T.Parallel(64, 64):
                    acc[i, j] += s[i, j] * s[i, j]
            T.copy(acc, B)

    return main


def neighbours(n: int, shift: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((n,), "float32")
            b = T.alloc_fragment((n,), "float32")
            T.copy(A, a)
            for i in T.Parallel(n):
                b[i] = a[i] + a[(i + shift) % n]
            T.copy(b, B)

    return main


def smaller_first(n: int, part: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((n,), "float32")
            T.fill(x, 5)
            for i in T.Parallel(part):
                x[i] = A[i]
            for i in T.Parallel(n):
                B[i] = x[i]

    return main


def siblings(policy: int, stride: int, apart: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((16, 32), "float16"), B: T.Tensor((32, 64), "float16"),
        C: T.Tensor((16, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((16, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((16, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            T.gemm(a, b, acc, policy=policy)
            for i, j in T.Parallel(16, 32):
                C[i, j] = acc[i, stride * j] * acc[i, stride * j + apart]

    return main


def _siblings(a: Any, b: Any, stride: int, apart: int, **_: Any) -> tuple[Any, ...]:
    c, j = a @ b, np.arange(32) * stride
    return (c[:, j] * c[:, j + apart],)


def one_accumulator(threads: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            T.gemm(a, b, acc, policy=T.GemmWarpPolicy.FullRow)
            T.gemm(b, a, acc, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            T.copy(acc, C)

    return main


def turned_operand() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 16), "float16"),
        C: T.Tensor((64, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 16), "float16")
            acc = T.alloc_fragment((64, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            T.gemm(a, b, acc, transpose_A=True)
            T.copy(acc, C)

    return main


def to_float8() -> Any:
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M, 128), "bfloat16"), B: T.Tensor((M, 128), "float8_e4m3fn")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
            s = T.alloc_shared((128, 128), "bfloat16")
            T.copy(A[bx * 128, 0], s)
            T.copy(s, B[bx * 128, 0])

    return main


def _to_float8_inputs(rng: np.random.Generator, M: int, **_: Any) -> tuple[Any, ...]:
    import torch

    return (torch.from_numpy(rng.standard_normal((M, 128))).bfloat16(),)


def few_threads_write(threads: int, writers: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((writers,), "float32"), B: T.Tensor((threads,), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((writers,), "float32")
            tx = T.get_thread_binding()
            for turn in T.serial(3):
                if tx < writers:
                    s[tx] = A[tx] + turn
                B[tx] = s[tx % writers]

    return main


def third_of_three(n: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((2, 64, 32), "float16"), B: T.Tensor((32, n), "float16"),
        C: T.Tensor((64, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((2, 64, 32), "float16")
            b = T.alloc_shared((32, n), "float16")
            acc = T.alloc_fragment((64, n), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            for p in T.serial(2):
                T.gemm(a[p, :, :], b, acc)
            T.copy(acc, C)

    return main


def shifted_rows(threads: int) -> Any:
    """The register of an element differs between threads."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((32, 64), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(8, 64):
                x[i + 1, j] = x[i + 1, j] * 2
            T.copy(x, B)

    return main


def _shifted(a: Any, **_: Any) -> tuple[Any, ...]:
    found = a.copy()
    found[1:9] *= 2
    return (found,)


def clamped_width() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 36), "float32"), B: T.Tensor((64, 36), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 36), "float32")
            T.copy(A, s, coalesced_width=8)
            T.copy(s, B)

    return main


def _normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[..., tuple[Any, ...]]:
    def inputs(rng: np.random.Generator, **_: Any) -> tuple[Any, ...]:
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return inputs


def _case(
    name: str, make: Any, inputs: Any, reference: Any, out_idx: tuple[int, ...] = (1,),
    sizes: dict[str, Any] | None = None, precision: str | None = None, **params: Any,
) -> KernelCase:  # fmt: skip
    return KernelCase(
        name=f"complaint_{name}", row="gpu", tier=1, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=params, sizes=sizes or {}, out_idx=out_idx,
        targets=("cuda:sm_80",), precision=(precision,), needs_torch=make is to_float8,
    )  # fmt: skip


_HALF = {"dtype": "float16"}

CASES: tuple[KernelCase, ...] = (
    *(
        _case(f"1_{threads}_{policy}_{n}", two_gemms, _normal((64, 64), (n, 64), **_HALF),
              _attended, (2,), precision="float16", threads=threads, policy=policy, N=n)
        for threads, policy, n in ((256, 1, 64), (128, 0, 64), (128, 1, 64), (256, 0, 128),
                                   (128, 2, 64))
    ),
    _case("2", blocks_of_a_row, lambda rng: (rng.integers(-9, 9, (16, 448)).astype(np.int32),),
          lambda x: (x.reshape(16, 14, 32).sum(2),)),
    *(_case(f"3_{n}", width, _normal((n,)), lambda a, **_: (a * 2,), n=n) for n in (192, 229, 257)),
    *(_case(f"5_{one}_{two}", two_pipelines, _normal((512, 64)), lambda a, **_: (
        (a + a * a).reshape(8, 64, 64).sum(0),), first=one, second=two)
      for one, two in ((2, 4), (4, 2), (1, 3))),
    *(_case(f"6_{n}_{shift}", neighbours, _normal((n,)), lambda a, n, shift: (
        a + np.roll(a, -shift),), n=n, shift=shift)
      for n, shift in ((128, 1), (128, 64), (1000, 77))),
    _case("8", smaller_first, _normal((256,)), lambda a, n, part: (
        np.where(np.arange(n) < part, a, 5),), n=256, part=100),
    *(_case(f"10_{policy}_{stride}_{apart}", siblings, _normal((16, 32), (32, 64), **_HALF),
            _siblings, (2,), policy=policy, stride=stride, apart=apart)
      for policy, stride, apart in ((1, 2, 1), (1, 1, 32), (0, 1, 32), (2, 2, 1))),
    *(_case(f"11_{threads}", one_accumulator, _normal((64, 64), (64, 64), **_HALF),
            lambda a, b, **_: (a @ b + b @ a.T,), (2,), threads=threads)
      for threads in (128, 64)),
    _case("17", turned_operand, _normal((64, 64), (64, 16), **_HALF), lambda a, b: (a.T @ b,),
          (2,)),
    _case("20", to_float8, _to_float8_inputs, lambda a, **_: (a,), sizes={"M": 200},
          precision="float8_e4m3fn"),
    *(_case(f"30_{threads}_{writers}", few_threads_write, _normal((writers,)),
            lambda a, threads, writers: ((a + 2)[np.arange(threads) % writers],),
            threads=threads, writers=writers)
      for threads, writers in ((512, 32), (64, 48), (128, 20))),
    *(_case(f"shifted_rows_{threads}", shifted_rows, _normal((32, 64)), _shifted, threads=threads)
      for threads in (32, 128)),
    _case("48", clamped_width, _normal((64, 36)), lambda a: (a,)),
    _case("55", third_of_three, _normal((2, 64, 32), (32, 64), **_HALF), lambda a, b, n: (
        (a @ b).sum(0),), (2,), n=64),
)  # fmt: skip
