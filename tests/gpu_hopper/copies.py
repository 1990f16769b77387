"""Tiles that the copy engine moves: ranks, swizzles, edges, several barriers, a ring of stages."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase

DTYPES = {"float16": np.float16, "float32": np.float32, "int8": np.int8, "float64": np.float64,
          "int32": np.int32, "uint8": np.uint8}  # fmt: skip


def through(shape: tuple[int, ...], tile: tuple[int, ...], dtype: str) -> Any:
    """Every tile of a tensor, through shared memory: in by the engine, out by it."""
    blocks = tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))
    total = 1
    for b in blocks:
        total *= b
    kept = tuple(n for n in tile if n > 1) or (1,)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(total, threads=64) as bx:
            S = T.alloc_shared(kept, dtype)
            full = T.alloc_barrier(64)
            at = [0] * len(shape)
            rest = bx
            for d in reversed(range(len(shape))):
                at[d] = (rest % blocks[d]) * tile[d]
                rest = rest // blocks[d]
            index = tuple(slice(p, p + n) for p, n in zip(at, tile, strict=True))
            T.tma_copy(A[index], S, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.tma_copy(S, B[index])

    return main


def rows(N: int, stages: int, tile: int, dtype: str = "float32") -> Any:
    """A ring of stages in one group of threads; sizes known at run time."""
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((stages, tile, N), dtype)
            total = T.alloc_fragment((N,), dtype)
            part = T.alloc_fragment((N,), dtype)
            full = T.alloc_barrier([128] * stages)
            steps = T.ceildiv(M, tile)
            T.clear(total)
            for s in T.unroll(stages):
                T.tma_copy(A[s * tile, 0], S[s, :, :], barrier=full[s])
                T.barrier_arrive(full[s])
            for k in T.serial(steps):
                slot = k % stages
                T.barrier_wait(full[slot], (k // stages) & 1)
                T.reduce_sum(S[slot, :, :], part, dim=0)
                for j in T.Parallel(N):
                    total[j] += part[j]
                T.tma_copy(A[(k + stages) * tile, 0], S[slot, :, :], barrier=full[slot])
                T.barrier_arrive(full[slot])
            for s in T.serial(stages):
                k = steps + s
                T.barrier_wait(full[k % stages], (k // stages) & 1)
            T.copy(total, B)

    return main


def reused(M: int, N: int) -> Any:
    """One tile stored again and again: the next writes wait until the engine has read it."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((16, N), "float16")
            for k in T.serial(M // 16):
                T.tma_store_wait(0)
                for i, j in T.Parallel(16, N):
                    S[i, j] = A[k * 16 + i, j] + k
                T.tma_copy(S, B[k * 16, 0])

    return main


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, shape).astype(DTYPES[dtype])
    return rng.standard_normal(shape).astype(DTYPES[dtype])


def through_inputs(rng: np.random.Generator, shape: Any, dtype: str, **_: Any) -> tuple[Any, ...]:
    return (_values(rng, shape, dtype),)


def through_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    return (a,)


def rows_inputs(rng: np.random.Generator, M: int, N: int, **_: Any) -> tuple[Any, ...]:
    return (_values(rng, (M, N), "float32"),)


def rows_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    return (a.sum(0),)


def reused_inputs(rng: np.random.Generator, M: int, N: int, **_: Any) -> tuple[Any, ...]:
    return (_values(rng, (M, N), "float16"),)


def reused_reference(a: Any, **_: Any) -> tuple[Any, ...]:
    return (a + np.repeat(np.arange(a.shape[0] // 16), 16)[:, None],)


CASES: tuple[KernelCase, ...] = (
    *(
        KernelCase(
            name=f"tma_through_{dtype}_{'x'.join(map(str, shape))}_{'x'.join(map(str, tile))}",
            row="tma_copy", tier=4, style="prim_func", make=through, inputs=through_inputs,
            reference=through_reference,
            params={"shape": shape, "tile": tile, "dtype": dtype},
            out_idx=(1,), targets=("cuda:sm_90a",),
        )
        for dtype, shape, tile in (
            ("float16", (1000,), (256,)), ("float32", (3000,), (1024,)),
            ("float16", (100, 72), (32, 64)), ("float16", (600, 128), (512, 128)),
            ("float32", (50, 20), (16, 12)), ("int8", (90, 304), (64, 96)),
            ("float64", (33, 10), (8, 8)), ("float16", (7, 40, 72), (1, 16, 32)),
            ("int32", (5, 9, 36), (2, 8, 32)), ("float16", (2, 50, 3, 64), (1, 32, 1, 64)),
            ("uint8", (2, 3, 4, 5, 48), (1, 2, 1, 4, 32)),
        )
    ),
    *(
        KernelCase(
            name=f"tma_rows_{M}x{N}_{stages}", row="tma_copy", tier=4, style="prim_func",
            make=rows, inputs=rows_inputs, reference=rows_reference,
            params={"N": N, "stages": stages, "tile": 8}, sizes={"M": M}, out_idx=(1,),
            targets=("cuda:sm_90a",),
        )
        for M, N, stages in ((100, 32, 2), (5, 128, 3), (1000, 64, 4))
    ),
    KernelCase(
        name="tma_reused", row="tma_copy", tier=4, style="prim_func", make=reused,
        inputs=reused_inputs, reference=reused_reference, params={"M": 160, "N": 64},
        out_idx=(1,), targets=("cuda:sm_90a",),
    ),
)  # fmt: skip
