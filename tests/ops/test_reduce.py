"""T.reduce_*: every kind, along every dimension, with and without the old value."""

import numpy as np
import pytest

import tilelang.language as T
from tests.support.lowering import assert_close, random_array, run_kernel

REFERENCE = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "abssum": lambda x, axis: np.abs(x).sum(axis),
    "absmax": lambda x, axis: np.abs(x).max(axis),
    "bitand": lambda x, axis: np.bitwise_and.reduce(x, axis=axis),
    "bitor": lambda x, axis: np.bitwise_or.reduce(x, axis=axis),
    "bitxor": lambda x, axis: np.bitwise_xor.reduce(x, axis=axis),
}
MERGE = {
    "sum": np.add, "abssum": np.add, "max": np.maximum, "absmax": np.maximum, "min": np.minimum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip
SHAPES = [((37, 100), 1), ((37, 100), 0), ((4, 9, 33), 1), ((2, 5, 64), -1), ((3, 7), 1)]


def kernel(shape, out_shape, dtype, kind, dim, clear):
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(out_shape, dtype)):
        with T.Kernel(1, threads=128) as _:
            source = T.alloc_fragment(shape, dtype)
            out = T.alloc_fragment(out_shape, dtype)
            T.copy(A, source)
            T.copy(B, out)
            T.reduce(source, out, kind, dim, clear)
            T.copy(out, B)

    return main


def expected(x, old, kind, dim, clear):
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    result = REFERENCE[kind](wide, axis=dim).reshape(old.shape)
    return result if clear else MERGE[kind](result, old.astype(result.dtype))


@pytest.mark.parametrize("clear", [True, False], ids=["clear", "keep"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax"])
def test_float32(kind, shape, dim, clear):
    out_shape = tuple(n for d, n in enumerate(shape) if d != dim % len(shape))
    x, y = random_array(shape, "float32"), random_array(out_shape, "float32", seed=1)
    want = expected(x, y, kind, dim, clear)
    run_kernel(kernel(shape, out_shape, "float32", kind, dim, clear), x, y)
    assert_close(y, want)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8"])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax"])
def test_dtypes_and_kept_dimension(kind, dtype):
    x, y = random_array((6, 50), dtype), random_array((6, 1), dtype, seed=1)
    if dtype == "int8":
        x //= 16  # sums must fit
    want = expected(x, y, kind, 1, True)
    run_kernel(kernel((6, 50), (6, 1), dtype, kind, 1, True), x, y)
    assert_close(y, want)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_bitwise(kind, dtype):
    x, y = random_array((9, 70), dtype), random_array((9,), dtype, seed=1)
    want = expected(x, y, kind, 1, False)
    run_kernel(kernel((9, 70), (9,), dtype, kind, 1, False), x, y)
    assert_close(y, want)


def test_half_precision_sums_accumulate_wider():
    x = np.full((1, 4096), 0.1, np.float16)
    y = np.zeros((1,), np.float16)
    run_kernel(kernel((1, 4096), (1,), "float16", "sum", 1, True), x, y)
    assert_close(y, x.astype(np.float64).sum(1))


def test_maximum_of_negatives_and_infinities():
    x = np.full((3, 40), -np.inf, np.float32)
    x[1, 7], x[2, :] = -3.0, -1e30
    y = np.zeros((3,), np.float32)
    run_kernel(kernel((3, 40), (3,), "float32", "max", 1, True), x, y)
    assert_close(y, np.array([-np.inf, -3.0, -1e30]))


def test_nan_propagation():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128) as _:
            source = T.alloc_fragment((4, 64), "float32")
            out = T.alloc_fragment((4,), "float32")
            T.copy(A, source)
            T.reduce_max(source, out, dim=1, nan_propagate=True)
            T.copy(out, B)

    x = random_array((4, 64), "float32")
    x[2, 17] = np.nan
    y = np.zeros(4, np.float32)
    run_kernel(main, x, y)
    np.testing.assert_array_equal(y, x.max(1))
