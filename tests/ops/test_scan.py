"""T.cumsum and T.cummax: along each dimension, both ways, in place or not."""

import numpy as np
import pytest

import tilelang.language as T
from tests.support.lowering import assert_close, random_array, run_kernel

SCANS = {"cumsum": np.cumsum, "cummax": np.maximum.accumulate}


def kernel(name, shape, dtype, dim, reverse, in_place):
    scan = getattr(T, name)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_shared(shape, dtype)
            y = T.alloc_shared(shape, dtype)
            T.copy(A, x)
            if in_place:
                scan(x, dim=dim, reverse=reverse)
                T.copy(x, B)
            else:
                scan(x, y, dim=dim, reverse=reverse)
                T.copy(y, B)

    return main


@pytest.mark.parametrize("in_place", [False, True], ids=["apart", "in-place"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize(("shape", "dim"), [((10, 33), 0), ((10, 33), 1), ((40,), 0)], ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_scan(name, shape, dim, reverse, in_place):
    x, y = random_array(shape, "float32"), np.zeros(shape, "float32")
    run_kernel(kernel(name, shape, "float32", dim, reverse, in_place), x, y)
    wide = np.flip(x, dim) if reverse else x
    want = SCANS[name](wide.astype(np.float64), axis=dim)
    assert_close(y, np.flip(want, dim) if reverse else want)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_dtypes(dtype):
    x, y = random_array((5, 64), dtype), np.zeros((5, 64), dtype)
    run_kernel(kernel("cumsum", (5, 64), dtype, 1, False, False), x, y)
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    assert_close(y, np.cumsum(wide, 1))
