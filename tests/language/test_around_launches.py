"""What stands around `T.Kernel`: branches, loops, promises; each where it is decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.support.markers import check_diagnostics
from tilelang.language.frontend import parse_static
from tilelang_diagnostics import CompileError

BRANCHES = {
    "a scalar argument": """
        @T.prim_func
        def main(A: T.Tensor((16,), "float32"), k: T.int32):
            if k > 3:
                with T.Kernel(1, threads=32):
              # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL161] inside a branch that is decided at run time
                    A[0] = 1
        """,
    "an else branch": """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            if n > 3:
                A[0] = 1
              # ^^^^ error[TL162] outside `with T.Kernel
            else:
                with T.Kernel(1, threads=32):
              # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL161]
                    A[0] = 2
        """,
    "a statement of a branch beside the launch": """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            if n > 3:
                T.clear(A)
              # ^^^^^^^^^^ error[TL162]
            with T.Kernel(1, threads=32):
                A[0] = 2
        """,
    "inside the launch": """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32):
                if n > 3:
                    A[0] = 2
        """,
    "decided in Python": """
        def factory(big=True):
            @T.prim_func
            def main(A: T.Tensor((16,), "float32")):
                if big:
                    with T.Kernel(2, threads=32) as bx:
                        A[bx] = 1
                else:
                    with T.Kernel(1, threads=32):
                        A[0] = 2
            return main
        """,
    "not decided yet": """
        def factory(n):
            @T.prim_func
            def main(A: T.Tensor((16,), "float32")):
                if n > 3:
                    with T.Kernel(2, threads=32) as bx:
                        A[bx] = 1
                else:
                    with T.Kernel(1, threads=32):
                        A[0] = 2
            return main
        """,
}  # fmt: skip


@pytest.mark.parametrize("case", BRANCHES)
def test_branches_around_a_launch(case: str) -> None:
    check_diagnostics(BRANCHES[case])


def test_a_const_dimension_decides_in_the_call() -> None:
    text = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def fill(A):
    M = T.const("M")
    A: T.Tensor((M,), "float32")
    if M > 3:
        with T.Kernel(M, threads=32) as bx:
            A[bx] = 1
    else:
        with T.Kernel(M, threads=32) as bx:
            A[bx] = 2
"""
    assert parse_static(text, "kernel.py").all_diagnostics == ()


n = T.dynamic("n")


@T.prim_func
def named(A: T.Tensor((n,), "float32")):
    quarter = n % 4
    fits = quarter == 0
    T.assume(fits)
    with T.Kernel(1, threads=32):
        T.assume(n % 4 == 0)  # once more: still one promise
        A[0] = 1


@T.prim_func
def read_from_memory(A: T.Tensor((n,), "float32")):
    with T.Kernel(1, threads=32):
        positive = A[0] > 0
        T.assume(positive)
        A[0] = 1


@T.prim_func
def empty_grid(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.if_then_else(n > 3, 1, 0), threads=32):
        A[0] = 1


def test_a_promise_through_names() -> None:
    kernel = tilelang.compile(named, target="cpu")
    x = np.zeros(8, np.float32)
    for _ in range(2):  # the second call takes the short way
        kernel(x)
    assert x[0] == 1
    for _ in range(2):
        with pytest.raises(CompileError) as caught:
            kernel(np.zeros(6, np.float32))
        (found,) = caught.value.diagnostics
        assert (found.code, found.message) == ("TL721", "`named` assumes n % 4 == 0, but n = 6")
        assert found.span is not None and found.span.file == __file__


def test_a_promise_about_elements_is_not_judged_at_the_call() -> None:
    x = np.zeros(8, np.float32)
    tilelang.compile(read_from_memory, target="cpu")(x)
    assert x[0] == 1


@pytest.mark.parametrize(("size", "first"), [(6, 1), (2, 0)])
def test_the_way_out_of_a_branch(size: int, first: Any) -> None:
    x = np.zeros(size, np.float32)
    tilelang.compile(empty_grid, target="cpu")(x)
    assert x[0] == first
