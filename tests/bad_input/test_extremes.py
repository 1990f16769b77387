"""Numbers and loops beyond every limit: a diagnostic or the IEEE answer, no failure of ours."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tilelang.dtypes import dtype
from tilelang_diagnostics import CompileError

ONE = np.ones(1, np.float32)


@tilelang.jit(target="cpu")
def held(A, number, element):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    B = T.empty((M,), T.float32)
    with T.Kernel(M, threads=32) as bx:
        x = T.alloc_local((1,), element)
        x[0] = number
        B[bx] = x[0]
    return B


@pytest.mark.parametrize(
    ("element", "number", "value", "warned"),
    [
        ("float32", 1e39, math.inf, True),
        ("float32", -1e60, -math.inf, True),
        ("float32", 10**400, math.inf, True),
        ("float32", 3.4028235e38, 3.4028235e38, False),
        ("float32", math.inf, math.inf, False),
        ("float16", -1e9, -math.inf, True),
        ("float16", 65519, 65504, False),
        ("float16", 65520, math.inf, True),
        ("bfloat16", 1e39, math.inf, True),
        ("float8_e4m3fn", 1000, 448, True),
        ("float8_e5m2", -1e9, -57344, True),
        ("float4_e2m1fn", 7, 6, True),
    ],
)
def test_constants_beyond_their_dtype(
    element: str, number: float, value: float, warned: bool
) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = held(ONE, number, element)
    assert result.tolist() == [np.float32(value)]
    assert any("TL235" in str(w.message) for w in found) == warned


def test_overflow_is_where_numpy_has_it() -> None:
    numbers = [65503.9, 65504.0, 65519.99, 65520.0, 65536.0, -65519.99, -65520.0, 1e300]
    with np.errstate(over="ignore"):
        for name, cls in (("float16", np.float16), ("float32", np.float32)):
            for number in (*numbers, *(n * 5.192e33 for n in numbers)):
                assert cls(dtype(name).overflowed(number)) == cls(number)


@tilelang.jit(target="cpu")
def launched(A, blocks):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    with T.Kernel(1, blocks, threads=32) as (bx, by):
        if bx + by < 0:
            A[0] = 1


@tilelang.jit(target="cpu")
def allocated(A, extent):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    with T.Kernel(1, threads=32) as _:
        tile = T.alloc_shared((extent,), T.float32)
        T.clear(tile)
        A[0] = tile[0]


@pytest.mark.parametrize(
    ("kernel", "number", "code"),
    [
        (launched, 1 << 31, "TL414"),
        (launched, 1 << 80, "TL414"),
        (launched, -1, "TL165"),
        (allocated, 1 << 63, "TL215"),
        (allocated, 10**30, "TL215"),
    ],
)
def test_sizes_beyond_every_limit(kernel: Any, number: int, code: str) -> None:
    with pytest.raises(CompileError) as caught:
        kernel.compile(ONE, number)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.span is not None and found.span.file == __file__
    assert found.help


def test_a_tensor_larger_than_every_memory() -> None:
    with pytest.raises(CompileError, match="extent 9223372036854775808 does not fit int64"):
        launched.compile(M=1 << 63, blocks=1)


def fails() -> Iterator[int]:
    yield 1
    raise KeyError("half-way")


class Endless:
    def __iter__(self) -> Iterator[int]:
        return itertools.count()


@tilelang.jit(target="cpu")
def unrolled(A, make):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    with T.Kernel(1, threads=32) as _:
        for i in make():
            A[0] = i


@tilelang.jit(target="cpu")
def listed(A, make):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    with T.Kernel(1, threads=32) as _:
        items = [i + 1 for i in make()]
        A[0] = len(items)


@pytest.mark.parametrize("kernel", [unrolled, listed], ids=["for", "comprehension"])
@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (itertools.count, "TL148", "more than"),
        (Endless, "TL148", "more than"),
        (fails, "TL183", "iterating raised KeyError: 'half-way'"),
        (lambda: 3, "TL141", ""),
    ],
)
def test_what_is_iterated_while_tracing(kernel: Any, make: Any, code: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        kernel.compile(ONE, make)
    found = caught.value.diagnostics[0]
    assert found.code == code and message in found.message
    assert found.span is not None and found.span.file == __file__


def test_a_list_that_is_too_long_says_how_long() -> None:
    with pytest.raises(CompileError, match="200000 iterations are unrolled"):
        unrolled.compile(ONE, lambda: [0] * 200_000)


@T.macro
def ping(A, depth):
    pong(A, depth + 1)


@T.macro
def pong(A, depth):
    ping(A, depth + 1)


def endless(n):
    return endless(n + 1)


def lookup(A, depth):
    return A[0] if depth == 0 else lookup(A, depth)


@tilelang.jit(target="cpu")
def recursive(A, how):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    with T.Kernel(1, threads=32) as _:
        if how == "macros":
            ping(A, 0)
        elif how == "a function":
            A[0] = endless(0)
        else:
            A[0] = lookup(A, 1)


@pytest.mark.parametrize("how", ["macros", "a function", "a function of a buffer"])
def test_recursion_without_an_end(how: str) -> None:
    with pytest.raises(RecursionError) as caught:
        recursive.compile(ONE, how)
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    assert found.code == "TL180" and found.help is not None
    assert found.span is not None and found.span.file == __file__


@tilelang.jit(target="cpu")
def rolled(A, count):
    M = T.const("M")
    A: T.Tensor((M,), T.int32)
    with T.Kernel(1, threads=32) as _:
        for _ in T.unroll(count):
            A[0] += 1
        for _ in range(count):  # a loop of the device
            A[1] += 1


def test_a_huge_unroll_is_a_hint_to_the_device_compiler() -> None:
    A = np.zeros(2, np.int32)
    rolled(A, 1_000_000)
    assert A.tolist() == [1_000_000, 1_000_000]
