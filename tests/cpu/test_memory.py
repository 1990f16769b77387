"""Is memory reached right: any alignment, any offset, big indices, updates from many cores?"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import compile_for_cpu, run_on_cpu
from tilelang.runtime.cpu import load_cpu, num_threads, set_num_threads


@pytest.fixture
def four_threads() -> Any:
    set_num_threads(4)
    yield
    set_num_threads(None)


def view_at(count: int, dtype: str, offset: int) -> np.ndarray:
    """An array whose address is `offset` bytes past a cache line."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize(
    ("dtype", "offset"),
    [(d, o) for d in ("float32", "float64", "float16", "int8", "int32")
     for o in (0, 1, 2, 4, 8, 12, 16, 32, 36, 60) if o % np.dtype(d).itemsize == 0],
)  # fmt: skip
def test_any_alignment_down_to_one_element(dtype: str, offset: int) -> None:
    count = 1000

    @T.prim_func
    def kernel(X: T.Tensor((count,), dtype), Y: T.Tensor((count,), dtype)):
        with T.Kernel(T.ceildiv(count, 128), threads=128) as bx:
            tile = T.alloc_shared((128,), dtype)
            T.copy(X[bx * 128], tile)
            T.copy(tile, Y[bx * 128])

    x, y = view_at(count, dtype, offset), view_at(count, dtype, (offset * 3) % 64)
    x[:] = np.arange(count) % 100
    run_on_cpu(kernel, x, y)
    np.testing.assert_array_equal(y, x)


def test_unaligned_gemm_operands() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float32")
            b = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    a, b, c = (view_at(4096, "float32", o) for o in (4, 20, 44))
    a[:], b[:] = np.random.default_rng(0).standard_normal((2, 4096))
    run_on_cpu(kernel, a, b, c)
    want = a.reshape(64, 64).astype(np.float64) @ b.reshape(64, 64)
    np.testing.assert_allclose(c.reshape(64, 64), want, rtol=1e-4, atol=1e-4)


def test_indices_beyond_32_bits() -> None:
    step = 1 << 30

    @T.prim_func
    def kernel(X: T.Tensor((5 * step,), "int8")):
        with T.Kernel(5, threads=1) as bx:
            X[bx * 1073741824 + 7] = T.cast(bx + 1, "int8")

    # Untouched pages of an anonymous mapping cost nothing.
    memory = mmap.mmap(-1, 5 * step)
    x = np.frombuffer(memory, np.int8)
    run_on_cpu(kernel, x)
    assert [int(x[i * step + 7]) for i in range(5)] == [1, 2, 3, 4, 5]


def test_strides_known_only_at_run_time() -> None:
    m, s = T.dynamic("m, s")

    @T.prim_func
    def kernel(X: T.StridedTensor((m, 8), (s, 1), "float32"), Y: T.Tensor((m, 8), "float32")):
        with T.Kernel(T.ceildiv(m, 4), threads=32) as bx:
            for i, j in T.Parallel(4, 8):
                if bx * 4 + i < m:
                    Y[bx * 4 + i, j] = X[bx * 4 + i, j] + 1.0

    x = np.random.default_rng(0).standard_normal((10, 20)).astype(np.float32)
    y = np.zeros((10, 8), np.float32)
    run_on_cpu(kernel, x[:, 3:], y, m=10, s=20)
    np.testing.assert_array_equal(y, x[:, 3:11] + 1)


ATOMIC_DTYPES = ["int32", "int64", "uint32", "float32", "float64", "float16", "bfloat16"]


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("dtype", ATOMIC_DTYPES)
def test_no_update_is_lost(dtype: str) -> None:
    blocks, rounds = 64, 32
    half = dtype in ("float16", "bfloat16")
    # bfloat16 counts exactly to 256 only.
    blocks, rounds = (16, 16) if half else (blocks, rounds)

    @T.prim_func
    def kernel(X: T.Tensor((3,), dtype)):
        with T.Kernel(blocks, threads=1) as bx:
            for i in T.serial(rounds):
                T.atomic_add(X[0], T.cast(1, dtype))
                T.atomic_max(X[1], T.cast(bx * rounds + i, dtype))
                T.atomic_min(X[2], T.cast(bx * rounds + i, dtype))

    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    assert num_threads() == 4
    x = np.array([0, 0, 100], kind)
    loaded = load_cpu(compile_for_cpu(kernel))
    for _ in range(1 if half else 20):
        x[:] = [0, 0, 100]
        loaded.run([x.ctypes.data])
        assert x.astype(np.float64).tolist() == [blocks * rounds, blocks * rounds - 1, 0]


def test_atomic_bits_exchange_and_old_values() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((4,), "int32"), Y: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            Y[0] = T.atomic_add(X[0], 5, return_prev=True)
            T.atomic_or(X[1], 12)
            T.atomic_and(X[2], 6)
            T.atomic_xor(X[3], 10)
            Y[1] = T.atomic_load(X[1])
            T.atomic_store(Y[2], 77)

    x, y = np.array([1, 3, 15, 6], np.int32), np.zeros(4, np.int32)
    run_on_cpu(kernel, x, y)
    assert x.tolist() == [6, 15, 6, 12]
    assert y.tolist() == [1, 15, 77, 0]


def test_vector_atomics_add_neighbours() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((8,), "float32"), V: T.Tensor((8,), "float32")):
        with T.Kernel(4, threads=1):
            T.atomic_addx2(X[0], V[0])
            T.atomic_addx4(X[4], V[4])

    x, v = np.zeros(8, np.float32), np.arange(8, dtype=np.float32)
    run_on_cpu(kernel, x, v)
    assert x.tolist() == [0, 4, 0, 0, 16, 20, 24, 28]


def test_any_and_all_of_a_region() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((4, 8), "int32"), Y: T.Tensor((4, 2), "int32")):
        with T.Kernel(4, threads=1) as bx:
            Y[bx, 0] = T.cast(T.any_of(X[bx, :]), "int32")
            Y[bx, 1] = T.cast(T.all_of(X[bx, :]), "int32")

    x = np.zeros((4, 8), np.int32)
    x[1, 7], x[2], x[3, :7] = 1, 1, 1
    y = np.full((4, 2), 9, np.int32)
    run_on_cpu(kernel, x, y)
    assert y.tolist() == [[0, 0], [1, 0], [1, 1], [1, 0]]
