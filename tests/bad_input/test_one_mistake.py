"""One mistake gives one diagnostic, at the place it was made, in the names of its author."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

ONES = np.ones((128, 128), np.float32)


@tilelang.jit(target="cpu")
def tiled(A, block_M=64):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_M), threads=128) as (bx, by):
        tile = T.alloc_shared((block_M, block_M), "float32")
        T.copy(A[bx * block_M, by * block_M], tile)
        for i, j in T.Parallel(block_M, block_M):
            tile[i, j] += 1
        T.copy(tile, A[bx * block_M, by * block_M])


@tilelang.jit(target="cpu")
def made(M, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            tile = T.alloc_shared((block_M,), "float32")
            T.copy(A[bx * block_M], tile)
            T.copy(tile, B[bx * block_M])

    return main


def only(use: Any) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        use()
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        (64.0, "TL116", "64.0, not an integer"),
        ("64", "TL116", "'64', not an integer"),
        (0, "TL117", "0, not a positive integer"),
    ],
)
@pytest.mark.parametrize(
    ("kernel", "use"),
    [
        ("tiled", lambda v: tiled(ONES, block_M=v)),
        ("tiled", lambda v: tiled.compile(M=128, N=128, block_M=v)),
        ("made", lambda v: made(128, block_M=v)),
    ],
)
def test_a_value_that_is_no_size(kernel: str, use: Any, value: Any, code: str, said: str) -> None:
    found = only(lambda: use(value))
    assert (found.code, found.message) == (code, f"`block_M` of `{kernel}` is {said}")
    assert found.span is not None and found.span.file == __file__
    assert found.help == "pass one, such as block_M=64"


def test_a_mistake_that_no_value_caused_is_said_where_it_is() -> None:
    @tilelang.jit(target="cpu")
    def wrong(A, stages=2):
        A: T.Tensor((4,), "float32")
        with T.Kernel(1):
            A[T.ceildiv(4, 0)] = stages

    assert "block" not in only(lambda: wrong(ONES[0, :4], stages=0)).message


def test_a_quotient_keeps_its_parentheses() -> None:
    check_diagnostics(
        in_kernel("""
        A[(bx - 1) // 0] = 1
        # ^^^^^^^^^^^^^ error[TL117] `(bx - 1) // 0`
     """)
    )


@tilelang.jit(target="cpu")
def mistyped(A):
    M = T.const("M")
    A: T.Tensor((M,), T.float33)  # type: ignore[name-defined]
    with T.Kernel(1):
        A[0] = 1


def test_a_wrong_type_is_no_unused_dimension() -> None:
    assert only(lambda: mistyped(ONES[0])).code == "TL111"


@tilelang.jit(target="cpu")
def returns_an_index(A):
    A: T.Tensor((4,), "float32")
    B = T.empty((4,), "float32")
    with T.Kernel(1) as bx:
        for i in T.serial(4):
            B[i] = A[i]
    return B, bx


def test_only_tensors_are_returned() -> None:
    found = only(lambda: returns_an_index(ONES[0, :4]))
    assert found.code == "TL137" and "`bx`" in found.message
    assert "returns tensors only" in found.message


def test_names_are_those_of_the_author() -> None:
    check_diagnostics(
        in_kernel("""
        for i in T.serial(4):
            A[i] = 1
        for i in T.serial(4):
            A[i + 16] = 1
        #     ^^^^^^ error[TL220] `i + 16` reaches
     """)
    )
