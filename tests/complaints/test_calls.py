"""Complaints about calls: the argument is named, and what was expected and given."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic, Span


def only(error: CompileError) -> Diagnostic:
    (found,) = error.diagnostics
    return found


def marked(span: Span | None) -> str:
    """The text a span of this file covers."""
    assert span is not None and span.line == span.end_line
    return linecache.getline(span.file, span.line)[span.column - 1 : span.end_column - 1]


@T.prim_func
def double(x: T.Tensor((4, 7), "float32"), y: T.Tensor((4, 7), "float32")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(4, 7):
            y[i, j] = x[i, j] * 2


@T.prim_func
def double_strided(x: T.StridedTensor((4, 7), (8, 1), "float32"), y: T.Tensor((4, 7), "float32")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(4, 7):
            y[i, j] = x[i, j] * 2


def test_s9_a_view_that_is_not_contiguous() -> None:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    kernel = tilelang.compile(double, out_idx=[1], target="cpu")
    with pytest.raises(ValueError) as raised:
        kernel(x[:, 1:])
    found = only(raised.value)
    assert found.code == "TL708"
    assert "argument `x`" in found.message
    assert "strides (8, 1), expected (7, 1)" in found.message
    assert marked(found.span) == "x"
    assert "np.ascontiguousarray(x)" in (found.help or "")
    assert "T.StridedTensor" in (found.help or "")
    # Both ways out that the help names.
    assert np.array_equal(kernel(np.ascontiguousarray(x[:, 1:])), x[:, 1:] * 2)
    strided = tilelang.compile(double_strided, out_idx=[1], target="cpu")
    assert np.array_equal(strided(x[:, 1:]), x[:, 1:] * 2)


def test_37_an_output_whose_dim_no_argument_gives() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), C: T.Tensor((m,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                if i < m:
                    C[i] = A[i]

    kernel = tilelang.compile(main, out_idx=[1], target="cpu")
    with pytest.raises(ValueError) as raised:
        kernel(np.ones(8, np.float32))
    found = only(raised.value)
    assert found.code == "TL710"
    assert "`m` of result `C`" in found.message
    assert marked(found.span) == "C"
    assert "tensor argument" in (found.help or "")
    out = np.zeros(5, np.float32)
    tilelang.compile(main, target="cpu")(np.ones(8, np.float32), out)
    assert out.all()


@pytest.mark.parametrize("out_idx", [[2], [-3], 7])
def test_37_an_out_idx_that_names_no_parameter(out_idx: Any) -> None:
    with pytest.raises(ValueError) as raised:
        tilelang.compile(double, out_idx=out_idx, target="cpu")
    found = only(raised.value)
    assert found.code == "TL712"
    assert "`double`" in found.message or "double" in found.message
    assert "0 to 1" in (found.help or "")


def test_51_a_plain_assert() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                assert A[i] > 0, "must be positive"
                B[i] = A[i]

    kernel = tilelang.compile(main, out_idx=[1], target="cpu")
    a = np.ones(8, np.float32)
    assert np.array_equal(kernel(a), a)
    a[3] = -1
    with pytest.raises(RuntimeError) as raised:
        kernel(a)
    found = only(raised.value)
    assert found.code == "TL722"
    assert "must be positive" in found.message
    assert marked(found.span) == 'assert A[i] > 0, "must be positive"'


def test_a_promise_about_the_arguments_is_checked() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), "float32"), B: T.Tensor((m,), "float32"), n: T.int32):
        with T.Kernel(T.ceildiv(m, 64), threads=64) as bx:
            T.assume(m % 4 == 0)
            T.assume(n <= m)
            for i in T.Parallel(64):
                if bx * 64 + i < n:
                    B[bx * 64 + i] = A[bx * 64 + i]

    kernel = tilelang.compile(main, target="cpu")
    a, b = np.ones(128, np.float32), np.zeros(128, np.float32)
    for _ in range(2):  # the second call takes the fast path
        kernel(a, b, 100)
    assert b.sum() == 100
    for arguments, names in (
        ((a[:126].copy(), b[:126].copy(), 1), "m = 126"),
        ((a, b, 129), "n = 129"),
    ):
        with pytest.raises(ValueError) as raised:
            kernel(*arguments)
        found = only(raised.value)
        assert found.code == "TL721"
        assert names in found.message
        assert marked(found.span).startswith("T.assume(")
