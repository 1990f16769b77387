"""Indices read from tensors: beyond the edge of those nothing is read, and nothing is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T

COUNT, SIZE = 100, 50


@T.prim_func
def gather(
    A: T.Tensor((SIZE,), "float32"), I: T.Tensor((COUNT,), "int32"),
    O: T.Tensor((COUNT,), "float32"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(COUNT, 64), threads=64) as bx:
        tile = T.alloc_shared((64,), "float32")
        for i in T.Parallel(64):
            tile[i] = A[I[bx * 64 + i]]
        T.copy(tile, O[bx * 64])


@T.prim_func
def scatter(
    A: T.Tensor((SIZE,), "float32"), I: T.Tensor((COUNT,), "int32"),
    O: T.Tensor((COUNT,), "float32"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(COUNT, 64), threads=64) as bx:
        for i in T.Parallel(64):
            O[I[bx * 64 + i]] = A[(bx * 64 + i) % SIZE] + 1


@T.prim_func
def chase(
    A: T.Tensor((SIZE,), "float32"), I: T.Tensor((COUNT,), "int32"),
    O: T.Tensor((COUNT,), "float32"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(COUNT, 64), threads=64) as bx:
        for i in T.Parallel(64):
            O[bx * 64 + i] = A[I[I[bx * 64 + i]]]


def picked(a: Any, index: Any) -> Any:
    inside = (index >= 0) & (index < a.size)
    return np.where(inside, a[np.where(inside, index, 0)], 0)


def expected(name: str, a: Any, index: Any) -> Any:
    if name == "gather":
        return picked(a, index)
    if name == "chase":
        # What cannot be read names nothing: not the first element either.
        inside = (index >= 0) & (index < COUNT)
        return np.where(inside, picked(a, picked(index, index)), 0)
    out = np.zeros(COUNT, "float32")
    for place, value in enumerate(index):
        if 0 <= value < COUNT:
            out[value] = a[place % SIZE] + 1
    return out


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("kernel", [gather, scatter, chase], ids=lambda k: k.function.name)
def test_they_are_tested_before_they_are_used(kernel: Any, target: str) -> None:
    name, rng = kernel.function.name, np.random.default_rng(5)
    a = rng.standard_normal(SIZE).astype("float32")
    # Each place once, some of them outside; none of the first, where a surplus thread would end.
    index = rng.permutation(np.arange(1, COUNT + 1)).astype("int32")
    index[::9] = [-3 - n for n in range(len(index[::9]))]
    out = np.zeros(COUNT, "float32")
    how = {} if target == "cpu" else {"execution_backend": tilelang.Emulator(check=True)}
    tilelang.compile(kernel, target=target, **how)(a, index, out)
    np.testing.assert_array_equal(out, expected(name, a, index))
