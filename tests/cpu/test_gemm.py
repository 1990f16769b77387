"""Does the register-blocked gemm give the float64 product for every size, dtype and orientation?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import run_on_cpu
from tilelang.ops.gemm_blocking import RegisterTile, choose_tile, pieces

TOLERANCE = {"float32": 1e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}


def product(
    m: int, n: int, k: int, dtype: str, accum: str, transpose_a: bool, transpose_b: bool,
    clear: bool | None = False,
) -> Any:  # fmt: skip
    """C += A @ B in two steps along K; `clear` None decides at run time, on the first step."""
    a_shape = (k, m) if transpose_a else (m, k)
    b_shape = (n, k) if transpose_b else (k, n)

    @T.prim_func
    def kernel(
        A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), accum)
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(a_shape, dtype)
            b = T.alloc_shared(b_shape, dtype)
            c = T.alloc_fragment((m, n), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 1)
            for step in T.serial(2):
                if clear is None:
                    T.gemm(a, b, c, transpose_a, transpose_b, clear_accum=step == 0)
                else:
                    T.gemm(a, b, c, transpose_a, transpose_b, clear_accum=clear)
            T.copy(c, C)

    return kernel


def operands(m: int, n: int, k: int, dtype: str, ta: bool, tb: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(m * 1000 + n * 100 + k)
    shapes = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    if dtype.startswith(("int", "uint")):
        low, high = (0, 100) if dtype.startswith("uint") else (-100, 100)
        return tuple(rng.integers(low, high, s).astype(dtype) for s in shapes)
    return tuple(rng.standard_normal(s) for s in shapes)


def check(m: int, n: int, k: int, dtype: str, accum: str, ta: bool, tb: bool, clear: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = operands(m, n, k, dtype, ta, tb)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    out = np.dtype(getattr(ml_dtypes, accum, accum))
    a, b, c = a.astype(kind), b.astype(kind), np.zeros((m, n), out)
    kernel = product(m, n, k, dtype, accum, ta, tb, clear)
    run_on_cpu(kernel, *(array.view(np.uint8) for array in (a, b, c)))
    once = (a.T if ta else a).astype(np.float64) @ (b.T if tb else b).astype(np.float64)
    want = {False: 1 + 2 * once, True: once, None: 2 * once}[clear]
    got = c.astype(np.float64)
    if accum.startswith(("int", "uint")):
        np.testing.assert_array_equal(got, want)
    else:
        assert np.linalg.norm(got - want) <= TOLERANCE[accum] * np.linalg.norm(want)


SIZES = [(1, 1, 1), (1, 64, 16), (6, 64, 32), (7, 65, 3), (64, 64, 32), (33, 17, 5), (100, 77, 40),
         (16, 8, 16), (128, 130, 8), (5, 3, 7)]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_every_size_and_orientation(size: tuple[int, int, int], ta: bool, tb: bool) -> None:
    check(*size, "float32", "float32", ta, tb, False)


DTYPES = [
    ("float16", "float32"), ("bfloat16", "float32"), ("float16", "float16"),
    ("bfloat16", "bfloat16"), ("float64", "float64"), ("int8", "int32"), ("uint8", "int32"),
    ("float8_e4m3fn", "float32"), ("float8_e5m2", "float32"), ("int32", "int32"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "accum"), DTYPES)
@pytest.mark.parametrize("size", [(32, 48, 16), (13, 21, 34)], ids=str)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, True)])
def test_every_dtype(
    dtype: str, accum: str, size: tuple[int, int, int], ta: bool, tb: bool
) -> None:
    check(*size, dtype, accum, ta, tb, False)


@pytest.mark.parametrize("clear", [True, None])
def test_accumulator_is_cleared_when_asked(clear: bool | None) -> None:
    check(17, 33, 9, "float32", "float32", False, False, clear)


@pytest.mark.parametrize("total", [1, 5, 16, 31, 64, 77, 100, 128, 1000])
@pytest.mark.parametrize(("size", "lanes"), [(6, 1), (64, 16), (24, 8), (32, 16)])
def test_pieces_cover_a_dimension_exactly_once(total: int, size: int, lanes: int) -> None:
    covered = []
    for piece in pieces(total, size, lanes):
        assert piece.size % piece.lanes == 0
        for block in range(piece.count):
            start = piece.start + block * piece.size
            covered += range(start, start + piece.size)
    assert covered == list(range(total))


@pytest.mark.parametrize(("lanes", "registers"), [(16, 32), (8, 16), (4, 32)])
def test_register_tiles_fit_the_registers(lanes: int, registers: int) -> None:
    for m in (1, 3, 16, 64, 100, 256):
        for n in (8, 17, 64, 128, 200):
            tile = choose_tile(m, n, lanes, registers)
            assert tile.rows * tile.vectors + tile.vectors + 1 <= registers


def test_an_empty_register_tile_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="empty register tile"):
        RegisterTile(0, 1, 16)
