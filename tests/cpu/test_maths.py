"""Are the mathematical functions right to the last places, edges included?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import run_on_cpu

EDGES = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38, 3.4e38,
    -3.4e38, 88.72, 88.73, -103.9, -104.1, 128.0, 127.99, -126.0, -149.0, -150.0, 0.5, 2.0,
)  # fmt: skip
Real = np.longdouble


def samples(dtype: str) -> np.ndarray:
    """Random bit patterns, the ranges where functions do their work, and the edges."""
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        bits = rng.integers(0, 1 << 32, 40_000, dtype=np.uint64).astype(np.uint32)
        parts = [
            bits.view(np.float32), rng.uniform(-1, 1, 20_000), rng.uniform(-20, 20, 20_000),
            rng.uniform(-150, 150, 20_000), rng.uniform(0.5, 2, 20_000), np.array(EDGES),
        ]  # fmt: skip
        return np.concatenate([p.astype(dtype) for p in parts])


def one_argument(name: str, dtype: str, count: int) -> Any:
    function = getattr(T, name)

    @T.prim_func
    def kernel(X: T.Tensor((count,), dtype), Y: T.Tensor((count,), dtype)):
        with T.Kernel(1, threads=1):
            for i in T.Parallel(count):
                Y[i] = function(X[i])

    return kernel


def errors(x: np.ndarray, y: np.ndarray, reference: Callable[[Any], Any]) -> np.ndarray:
    """The distance of `y` from the exact result, in units in its last place."""
    with np.errstate(all="ignore"):
        exact = reference(x.astype(Real))
        want = exact.astype(x.dtype)
    assert (np.isnan(want) == np.isnan(y)).all()
    finite = np.isfinite(want)
    assert (np.isinf(y) == np.isinf(want)).all()
    assert (y[np.isinf(want)] == want[np.isinf(want)]).all()
    tiny = np.finfo(x.dtype).tiny
    unit = np.spacing(np.maximum(np.abs(want[finite]), tiny)).astype(Real)
    return np.abs(y[finite].astype(Real) - exact[finite]) / unit


FLOAT32 = {
    "exp": (1.0, np.exp), "exp2": (1.0, np.exp2), "exp10": (1.5, lambda v: Real(10) ** v),
    "log": (1.0, np.log), "log2": (1.0, np.log2), "log10": (1.0, np.log10),
    "log1p": (1.0, np.log1p), "tanh": (1.5, np.tanh), "sqrt": (0.5, np.sqrt),
    "rsqrt": (1.5, lambda v: 1 / np.sqrt(v)), "floor": (0, np.floor), "ceil": (0, np.ceil),
    "trunc": (0, np.trunc), "nearbyint": (0, np.rint), "sin": (1.0, np.sin), "cos": (1.0, np.cos),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT32)
def test_float32_is_right_within_units_in_the_last_place(name: str) -> None:
    allowed, reference = FLOAT32[name]
    x = samples("float32")
    y = np.zeros_like(x)
    run_on_cpu(one_argument(name, "float32", len(x)), x, y)
    assert errors(x, y, reference).max() <= allowed


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "sqrt", "sin"])
def test_float64_comes_from_the_c_library(name: str) -> None:
    _, reference = FLOAT32[name]
    x = samples("float64")
    y = np.zeros_like(x)
    run_on_cpu(one_argument(name, "float64", len(x)), x, y)
    assert errors(x, y, reference).max() <= 1.0


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "tanh", "sqrt", "rsqrt"])
def test_float16_is_float32_rounded(name: str) -> None:
    _, reference = FLOAT32[name]
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)  # every value there is
    y = np.zeros_like(x)
    run_on_cpu(one_argument(name, "float16", len(x)), x, y)
    assert errors(x, y, reference).max() <= 0.501


def test_erf_is_right_within_units_in_the_last_place() -> None:
    x = np.linspace(-5, 5, 20_001, dtype=np.float32)
    y = np.zeros_like(x)
    run_on_cpu(one_argument("erf", "float32", len(x)), x, y)
    exact = np.vectorize(math.erf)(x.astype(np.float64))
    # The lower bound keeps the test from passing on zeros.
    assert np.abs(exact).max() > 0.99
    assert (np.abs(y - exact) / np.spacing(np.abs(exact.astype(np.float32)))).max() <= 1.5


def test_maximum_ignores_nan() -> None:
    @T.prim_func
    def kernel(
        X: T.Tensor((4,), "float32"), Y: T.Tensor((4,), "float32"), Z: T.Tensor((2, 4), "float32")
    ):
        with T.Kernel(1, threads=1):
            for i in T.Parallel(4):
                Z[0, i] = T.max(X[i], Y[i])
                Z[1, i] = T.min(X[i], Y[i])

    x = np.array([1, np.nan, np.nan, -np.inf], np.float32)
    y = np.array([np.nan, 2, np.nan, 3], np.float32)
    z = np.zeros((2, 4), np.float32)
    run_on_cpu(kernel, x, y, z)
    np.testing.assert_array_equal(z, [np.fmax(x, y), np.fmin(x, y)])


def test_integer_division_floors_and_never_traps() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((4, 8), "int32")
    ):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                C[0, i] = A[i] // B[i]
                C[1, i] = A[i] % B[i]
                C[2, i] = T.truncdiv(A[i], B[i])
                C[3, i] = A[i] // 8

    a = np.array([7, -7, 7, -7, 5, -(1 << 31), 0, 9], np.int32)
    b = np.array([2, 2, -2, -2, 0, -1, 3, -9], np.int32)
    c = np.zeros((4, 8), np.int32)
    run_on_cpu(kernel, a, b, c)
    usable = [0, 1, 2, 3, 6, 7]
    np.testing.assert_array_equal(c[0, usable], a[usable] // b[usable])
    np.testing.assert_array_equal(c[1, usable], a[usable] % b[usable])
    np.testing.assert_array_equal(c[2, usable], np.trunc(a[usable] / b[usable]))
    np.testing.assert_array_equal(c[3], a // 8)


def test_division_by_a_loop_invariant_is_exact() -> None:
    count, divisors = 4096, 64

    @T.prim_func
    def kernel(
        X: T.Tensor((count,), "float32"), D: T.Tensor((divisors,), "float32"),
        Y: T.Tensor((divisors, count), "float32"),
    ):  # fmt: skip
        with T.Kernel(divisors, threads=1) as bx:
            for i in T.Parallel(count):
                Y[bx, i] = X[i] / D[bx]

    rng = np.random.default_rng(4)
    x = rng.standard_normal(count) * 2.0 ** rng.integers(-40, 40, count)
    x[:5] = [0.0, -0.0, np.inf, -np.inf, np.nan]
    d = rng.standard_normal(divisors) * 2.0 ** rng.integers(-35, 35, divisors)
    d[:8] = [0.0, -0.0, np.inf, np.nan, 1e-42, 3e38, 1.0, np.nextafter(np.float32(2), 0)]
    x, d = x.astype(np.float32), d.astype(np.float32)
    y = np.zeros((divisors, count), np.float32)
    run_on_cpu(kernel, x, d, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, x[None, :] / d[:, None])
        # Outside the exact range one unit in the last place is allowed.
        tiny = np.geomspace(1e-38, 1e-29, count).astype(np.float32)
        run_on_cpu(kernel, tiny, d, y)
        want = tiny[None, :] / d[:, None]
        close = np.abs(y - want) <= np.spacing(np.abs(want))
    assert (close | (y == want) | np.isnan(want)).all()
