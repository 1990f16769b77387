"""Complaints whose kernels are correct: they compile and give the right numbers.

Each test names its number in the collected list. Sums are compared with float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilelang
import tilelang.language as T
from tests.kernels.case import relative_error
from tilelang.layout import make_swizzled_layout

Array = NDArray[Any]


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 8), (4, 1)])
def test_24_copies_of_extent_one(rows: int, columns: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((5, columns), "float32"), B: T.Tensor((5, columns), "float32")):
        with T.Kernel(T.ceildiv(5, rows), threads=32) as bx:
            shared = T.alloc_shared((rows, columns), "float32")
            local = T.alloc_fragment((rows, columns), "float32")
            T.copy(A[bx * rows : (bx + 1) * rows, :], shared)
            T.copy(shared, local)
            T.copy(local, B[bx * rows, 0])

    a = normal(5, columns)
    assert np.array_equal(tilelang.compile(main, out_idx=[1], target="cpu")(a), a)


@pytest.mark.parametrize("both_sides", [True, False])
def test_34_a_copy_of_run_time_extent(both_sides: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((2000,), "float32"), length: T.int32, B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((1024,), "float32")
            T.fill(tile, -1.0)
            if both_sides:
                T.copy(A[0:length], tile[0:length])
            else:
                T.copy(A[0:length], tile)
            T.copy(tile, B)

    a, b = normal(2000), np.empty(1024, np.float32)
    tilelang.compile(main, target="cpu")(a, 300, b)
    assert np.array_equal(b[:300], a[:300])
    # What a copy covers and its source does not have reads as 0.
    assert np.array_equal(b[300:], np.full(724, -1 if both_sides else 0, np.float32))


def test_36_a_dynamic_gemm_with_two_outputs() -> None:
    M, N, K = T.dynamic("M, N, K")

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
        D: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])
            for i, j in T.Parallel(32, 32):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, D[by * 32, bx * 32])

    kernel = tilelang.compile(main, out_idx=[2, 3], target="cpu")
    for m, n, k in ((45, 33, 70), (64, 64, 32)):
        a, b = normal(m, k), normal(k, n)
        c, d = kernel(a, b)
        assert relative_error(c, product(a, b)) <= 1e-5
        assert np.array_equal(d, np.maximum(c, 0))


def test_37_an_output_before_the_input_that_gives_its_dim() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(C: T.Tensor((m,), "float32"), A: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 64), threads=64) as bx:
            for i in T.Parallel(64):
                C[bx * 64 + i] = A[bx * 64 + i] * 2

    a = normal(100)
    assert np.array_equal(tilelang.compile(main, out_idx=[0], target="cpu")(a), a * 2)


@pytest.mark.parametrize("dim", [0, 1])
def test_45_a_running_sum_along_either_axis(dim: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((32, 64), "float32")
            T.copy(A, tile)
            T.cumsum(tile, dim=dim)
            T.copy(tile, B)

    a = normal(32, 64)
    got = tilelang.compile(main, out_idx=[1], target="cpu")(a)
    assert relative_error(got, np.cumsum(a.astype(np.float64), dim)) <= 1e-5


def test_52_eight_lanes() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            for v in T.vectorized(8):
                B[tx * 8 + v] = A[tx * 8 + v] + 1

    a = normal(64)
    assert np.array_equal(tilelang.compile(main, out_idx=[1], target="cpu")(a), a + 1)


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "accumulator", "threads"),
    [
        pytest.param(16, 104, 64, "float16", "float32", 384, id="13"),
        pytest.param(16, 32, 16, "float16", "float32", 32, id="14"),
        pytest.param(64, 64, 16, "int8", "int32", 128, id="15 int8"),
        pytest.param(64, 64, 8, "float16", "float32", 128, id="15 half"),
        pytest.param(20, 20, 16, "float16", "float32", 32, id="S5"),
    ],
)
def test_tiles_no_matrix_instruction_takes(
    m: int, n: int, k: int, dtype: str, accumulator: str, threads: int
) -> None:
    """A GPU refuses or pads them; the CPU takes any."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), accumulator)
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((m, k), dtype)
            b = T.alloc_shared((k, n), dtype)
            c = T.alloc_fragment((m, n), accumulator)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    a, b = (normal(*shape) * 4 for shape in ((m, k), (k, n)))
    a, b = a.astype(dtype), b.astype(dtype)
    got = tilelang.compile(main, out_idx=[2], target="cpu")(a, b)
    assert relative_error(got, product(a, b)) <= (0 if dtype == "int8" else 1e-5)


@tilelang.jit(out_idx=[2])
def whole_kernel(
    A: T.Tensor((64, 96), "float16"),
    B: T.Tensor((96, 48), "float16"),
    C: T.Tensor((64, 48), "float32"),
):
    with T.Kernel(T.ceildiv(48, 16), T.ceildiv(64, 32), threads=128) as (bx, by):
        a = T.alloc_shared((32, 32), "float16")
        b = T.alloc_shared((32, 16), "float16")
        c = T.alloc_fragment((32, 16), "float32")
        T.clear(c)
        for k in T.serial(T.ceildiv(96, 32)):
            T.copy(A[by * 32, k * 32], a)
            T.copy(B[k * 32, bx * 16], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 16])


def test_s1_the_decorated_function_is_the_kernel() -> None:
    a, b = normal(64, 96, dtype="float16"), normal(96, 48, dtype="float16")
    assert relative_error(whole_kernel(a, b), product(a, b)) <= 1e-5


@pytest.mark.parametrize("explicit", [False, True])
def test_s4_a_slice_of_k_and_n_with_and_without_a_layout(explicit: bool) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 96), "float32"),
        B: T.Tensor((96, 80), "float32"),
        C: T.Tensor((64, 80), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float32")
            b = T.alloc_shared((32, 80), "float32")
            c = T.alloc_fragment((64, 80), "float32")
            if explicit:
                T.annotate_layout({b: T.Layout((32, 80), lambda k, n: (k, n ^ (k % 8 * 2)))})
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32 : (k + 1) * 32, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    a, b = normal(64, 96), normal(96, 80)
    got = tilelang.compile(main, out_idx=[2], target="cpu")(a, b)
    assert relative_error(got, product(a, b)) <= 1e-5


def test_s6_a_swizzled_gemm_in_double_precision() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float64"),
        B: T.Tensor((64, 64), "float64"),
        C: T.Tensor((64, 64), "float64"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float64")
            b = T.alloc_shared((64, 64), "float64")
            c = T.alloc_fragment((64, 64), "float64")
            T.annotate_layout({a: make_swizzled_layout(a), b: make_swizzled_layout(b)})
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    a, b = normal(64, 64, dtype="float64"), normal(64, 64, dtype="float64")
    got = tilelang.compile(main, out_idx=[2], target="cpu")(a, b)
    assert relative_error(got, product(a, b)) <= 1e-12
