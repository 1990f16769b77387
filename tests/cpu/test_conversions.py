"""Is every format read and written as its definition says?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import run_on_cpu

ml_dtypes = pytest.importorskip("ml_dtypes")

SMALL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
SATURATING = [name for name in SMALL if name.startswith("float8") and name != "float8_e8m0fnu"]


def converter(source: str, target: str, count: int) -> Any:
    @T.prim_func
    def kernel(X: T.Tensor((count,), source), Y: T.Tensor((count,), target)):
        with T.Kernel(1, threads=1):
            for i in T.Parallel(count):
                Y[i] = T.cast(X[i], target)

    return kernel


@pytest.mark.parametrize("name", SMALL)
def test_every_code_is_read_exactly(name: str) -> None:
    dtype = np.dtype(SMALL[name])
    codes = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32)
    x = codes.astype(f"uint{8 * dtype.itemsize}").view(dtype)
    y = np.zeros(len(x), np.float32)
    run_on_cpu(converter(name, "float32", len(x)), x.view(f"uint{8 * dtype.itemsize}"), y)
    np.testing.assert_array_equal(y, x.astype(np.float32))


def values(name: str, seed: int) -> np.ndarray:
    """Numbers of every magnitude the format has, ties and both neighbours of ties."""
    dtype = np.dtype(SMALL[name])
    codes = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        every = codes.astype(f"uint{8 * dtype.itemsize}").view(dtype).astype(np.float64)
    every = np.sort(every[np.isfinite(every)])
    ties = (every[1:] + every[:-1]) / 2
    near = np.concatenate([np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    rng = np.random.default_rng(seed)
    wild = rng.standard_normal(1000) * 10.0 ** rng.uniform(-12, 12, 1000)
    return np.concatenate([every, ties, near, wild, [0.0, -0.0, np.inf, -np.inf, np.nan]])


def rounded(x: np.ndarray, name: str) -> np.ndarray:
    """The nearest value of the format, ties to the even code, saturating where ours does.

    Not ml_dtypes' own conversion, which rounds float64 twice.
    """
    dtype = np.dtype(SMALL[name])
    codes = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        every = codes.astype(f"uint{8 * dtype.itemsize}").view(dtype).astype(np.float64)
    order = np.argsort(every[np.isfinite(every)], kind="stable")
    table, code = every[np.isfinite(every)][order], codes[np.isfinite(every)][order]
    x = x.astype(np.float64)
    inside = np.clip(np.nan_to_num(x, nan=0.0), table[0], table[-1])
    above = np.clip(np.searchsorted(table, inside), 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    up = (inside - low > high - inside) | (
        (inside - low == high - inside) & (code[above - 1] % 2 == 1)
    )
    result = np.where(up, high, low)
    if name not in SATURATING:
        limit = table[-1] + (table[-1] - table[-2]) / 2
        result = np.where(np.abs(x) >= limit, np.copysign(np.inf, x), result)
    return np.where(np.isnan(x), np.nan, result)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", [n for n in SMALL if n != "float8_e8m0fnu"])
def test_numbers_round_once_to_nearest_even(name: str, source: str) -> None:
    dtype = np.dtype(SMALL[name])
    with np.errstate(all="ignore"):
        x = values(name, 3).astype(source)
    y = np.zeros(len(x), f"uint{8 * dtype.itemsize}")
    run_on_cpu(converter(source, name, len(x)), x, y)
    np.testing.assert_array_equal(y.view(dtype).astype(np.float64), rounded(x, name))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_floats_saturate_to_integers(name: str) -> None:
    x = np.array([0, 1.9, -1.9, 300, -300, 1e10, -1e10, 1e30, np.nan, np.inf, -np.inf], np.float32)
    y = np.zeros(len(x), name)
    run_on_cpu(converter("float32", name, len(x)), x, y)
    limits = np.iinfo(name)
    exact = [0 if np.isnan(v) else int(max(min(float(v), 2.0**70), -(2.0**70))) for v in x]
    assert y.tolist() == [max(min(v, limits.max), limits.min) for v in exact]


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn"])
def test_integers_round_once(name: str) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([np.arange(-3000, 3000), rng.integers(-(1 << 31), 1 << 31, 2000)])
    x = x.astype(np.int32)
    dtype = np.dtype(SMALL[name])
    y = np.zeros(len(x), f"uint{8 * dtype.itemsize}")
    run_on_cpu(converter("int32", name, len(x)), x, y)
    np.testing.assert_array_equal(
        y.view(dtype).astype(np.float64), rounded(x.astype(np.float64), name)
    )


def test_int4_packs_two_per_byte_low_nibble_first() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64,), "int4"), Y: T.Tensor((64,), "int32"), Z: T.Tensor((64,), "int4")):
        with T.Kernel(4, threads=1) as bx:
            for i in T.Parallel(16):
                Y[bx * 16 + i] = T.cast(X[bx * 16 + i], "int32")
                Z[bx * 16 + i] = T.cast(Y[bx * 16 + i] + 3, "int4")

    packed = np.random.default_rng(2).integers(0, 256, 32).astype(np.uint8)
    y, z = np.zeros(64, np.int32), np.zeros(32, np.uint8)
    run_on_cpu(kernel, packed, y, z)
    nibbles = np.stack([packed & 15, packed >> 4], 1).reshape(-1).astype(np.int32)
    signed = np.where(nibbles > 7, nibbles - 16, nibbles)
    np.testing.assert_array_equal(y, signed)
    moved = (signed + 3) & 15
    np.testing.assert_array_equal(z, moved[0::2] | moved[1::2] << 4)


def test_neighbouring_nibbles_of_different_blocks_survive() -> None:
    count = 4096

    @T.prim_func
    def kernel(Z: T.Tensor((count,), "uint4")):
        with T.Kernel(count, threads=1) as bx:
            Z[bx] = T.cast(bx % 16, "uint4")

    z = np.full(count // 2, 0xFF, np.uint8)
    run_on_cpu(kernel, z)
    want = np.arange(count) % 16
    np.testing.assert_array_equal(z, want[0::2] | want[1::2] << 4)


def test_fp4_decodes() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((16,), "float4_e2m1fn"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(16):
                Y[i] = T.cast(X[i], "float32")

    codes = np.arange(16, dtype=np.uint8)
    packed = codes[0::2] | codes[1::2] << 4
    y = np.zeros(16, np.float32)
    run_on_cpu(kernel, packed, y)
    half = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert y.tolist() == half + [-v for v in half]


def test_arithmetic_in_small_floats_rounds_every_operation() -> None:
    @T.prim_func
    def kernel(
        X: T.Tensor((4096,), "bfloat16"), Y: T.Tensor((4096,), "bfloat16"),
        Z: T.Tensor((4096,), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=1):
            for i in T.Parallel(4096):
                Z[i] = X[i] * Y[i] + Y[i]

    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(4096).astype(ml_dtypes.bfloat16) for _ in range(2))
    z = np.zeros(4096, np.uint16)
    run_on_cpu(kernel, x.view(np.uint16), y.view(np.uint16), z)
    np.testing.assert_array_equal(z.view(ml_dtypes.bfloat16), x * y + y)
