"""Rows without a kernel of their own: how arguments bind, which torch dtype is meant, compile()."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.kernels import eager_forms, gemm
from tests.kernels.case import relative_error


@tilelang.jit
def scaled_sum(A, B, block=32, scale=2):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B: T.Tensor((N,), T.float32)
    C = T.empty((N,), T.float32)

    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = (A[bx * block + i] + B[bx * block + i]) * scale

    return C


A = np.arange(70, dtype=np.float32)
B = A[::-1].copy()


@pytest.mark.parametrize(
    ("args", "kwargs", "scale"),
    [
        pytest.param((A, B), {}, 2, id="defaults"),
        pytest.param((A, B, 16), {}, 2, id="positional constant"),
        pytest.param((A,), {"B": B}, 2, id="tensor by name"),
        pytest.param((), {"B": B, "A": A, "scale": 3}, 3, id="all by name"),
        pytest.param((A, B, 16, 5), {}, 5, id="all by position"),
    ],
)
def test_arguments_bind_like_python(args: Any, kwargs: Any, scale: int) -> None:
    assert np.array_equal(scaled_sum(*args, **kwargs), (A + B) * scale)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        pytest.param((A,), {}, ("B",), id="missing"),
        pytest.param((A, B), {"A": A}, ("A",), id="given twice"),
        pytest.param((A, B, 16, 2, 1), {}, (), id="too many"),
        pytest.param((A, B), {"blok": 16}, ("blok",), id="unknown name"),
    ],
)
def test_wrong_arguments_are_type_errors(args: Any, kwargs: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(TypeError) as refusal:
        scaled_sum(*args, **kwargs)
    for word in words:
        assert word in str(refusal.value)


def test_lists_are_frozen_into_the_cache_key() -> None:
    @tilelang.jit
    def weighted(A, weights):
        N = T.const("N")
        A: T.Tensor((N,), T.float32)
        B = T.empty((N,), T.float32)
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(N):
                B[i] = A[i] * weights[0] + weights[1]
        return B

    assert np.array_equal(weighted(A, [2, 1]), A * 2 + 1)
    assert np.array_equal(weighted(A, [3, 4]), A * 3 + 4)


def test_values_without_a_hash_are_refused() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError):
        scaled_sum(A, B, scale=Unhashable())


def test_compile_takes_the_sizes_and_runs_nothing() -> None:
    kernel = eager_forms.gemm_const_dims.compile(M=51, N=70, K=45)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((51, 45)).astype(np.float16)
    b = rng.standard_normal((45, 70)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert relative_error(kernel(a, b), expected) <= 1e-5


def test_a_dynamic_size_is_compiled_once() -> None:
    for rows in (1, 17, 45):
        a = np.ones((rows, 37), np.float32)
        assert np.array_equal(eager_forms.dynamic_rows(a), a + 1)


def test_lazy_kernel_says_its_source() -> None:
    kernel = gemm.matmul_lazy(M=64, N=64, K=32, block_M=32, block_N=32, block_K=16)
    assert "main" in kernel.get_kernel_source()


def test_target_c_means_the_cpu() -> None:
    factory = gemm.matmul_prim_func(M=53, N=70, K=45, block_M=16, block_N=32, block_K=16)
    kernel = tilelang.compile(factory, out_idx=[2], target="c")
    assert "main" in kernel.get_kernel_source()
    a, b = gemm.inputs_float32(np.random.default_rng(0), M=53, N=70, K=45)
    assert relative_error(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64)) <= 1e-5


@pytest.mark.parametrize(
    "name",
    [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
    ],
)
def test_dtype_as_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(T, name)
    assert dtype == name
    assert dtype.as_torch() is getattr(torch, name)
    assert T.dtype(getattr(torch, name)) == name


def test_int4_is_stored_in_bytes() -> None:
    torch = pytest.importorskip("torch")
    assert T.int4.as_torch() is torch.int8
