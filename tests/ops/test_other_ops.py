"""T.fill, T.transpose, tile atomics, T.im2col and reducers."""

import numpy as np
import pytest

import tilelang.language as T
from tests.support.lowering import assert_close, random_array, run_kernel


@pytest.mark.parametrize(("dtype", "value"), [("float16", 1.5), ("int8", -3), ("bool", True)])
def test_fill_of_a_region(dtype, value):
    @T.prim_func
    def main(A: T.Tensor((8, 20), dtype)):
        with T.Kernel(1) as _:
            T.fill(A[2:5, 3:17], value)

    x = np.zeros((8, 20), dtype)
    run_kernel(main, x)
    want = np.zeros((8, 20), dtype)
    want[2:5, 3:17] = value
    np.testing.assert_array_equal(x, want)


def test_transpose():
    @T.prim_func
    def main(A: T.Tensor((24, 40), "float16"), B: T.Tensor((40, 24), "float16")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((24, 40), "float16")
            y = T.alloc_shared((40, 24), "float16")
            T.copy(A, x)
            T.transpose(x, y)
            T.copy(y, B)

    x, y = random_array((24, 40), "float16"), np.zeros((40, 24), "float16")
    run_kernel(main, x, y)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("name", ["atomic_add", "atomic_max", "atomic_min"])
def test_tile_atomics_from_several_blocks(name):
    update = getattr(T, name)

    @T.prim_func
    def main(A: T.Tensor((6, 30), "float32"), B: T.Tensor((30,), "float32")):
        with T.Kernel(6, threads=32) as bx:
            x = T.alloc_shared((32,), "float32")
            T.copy(A[bx, 0], x)
            update(B[0], x)

    x, y = random_array((6, 30), "float32"), np.zeros((30,), "float32")
    run_kernel(main, x, y)
    reference = {"atomic_add": np.sum, "atomic_max": np.max, "atomic_min": np.min}[name]
    start = np.zeros((1, 30))
    assert_close(y, reference(np.concatenate([start, x.astype(np.float64)]), axis=0))


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pad"),
    [(3, 1, 1, 1), (3, 2, 1, 0), (2, 1, 2, 1), (1, 1, 1, 0)],
)
def test_im2col(kernel, stride, dilation, pad):
    N, H, W, C = 2, 9, 11, 4
    reach = dilation * (kernel - 1) + 1
    OH, OW = ((s + 2 * pad - reach) // stride + 1 for s in (H, W))
    rows, columns = 16, 12
    tiles_m, tiles_k = -(-N * OH * OW // rows), -(-kernel * kernel * C // columns)

    @T.prim_func
    def main(
        A: T.Tensor((N, H, W, C), "float32"),
        B: T.Tensor((tiles_m * rows, tiles_k * columns), "float32"),
    ):
        with T.Kernel(tiles_m) as bx:
            tile = T.alloc_shared((rows, columns), "float32")
            for k in T.serial(tiles_k):
                T.im2col(A, tile, bx, k, kernel, stride, dilation, pad)
                T.copy(tile, B[bx * rows, k * columns])

    x = random_array((N, H, W, C), "float32")
    y = np.ones((tiles_m * rows, tiles_k * columns), "float32")
    run_kernel(main, x, y)
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    want = np.zeros_like(y)
    for row in range(N * OH * OW):
        n, h, w = row // (OH * OW), row % (OH * OW) // OW * stride, row % OW * stride
        window = padded[n, h : h + reach : dilation, w : w + reach : dilation]
        want[row, : kernel * kernel * C] = window.ravel()
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("start", [None, 2.5])
def test_reducer(op, start):
    @T.prim_func
    def main(A: T.Tensor((9, 50), "float32"), B: T.Tensor((9,), "float32")):
        with T.Kernel(1, threads=64) as _:
            acc = T.alloc_reducer((9,), "float32", op=op)
            out = T.alloc_fragment((9,), "float32")
            T.reducer_init(acc, start)
            for i, j in T.Parallel(9, 50):
                T.reducer_update(acc[i], A[i, j])
            T.finalize_reducer(acc, out)
            T.copy(out, B)

    x, y = random_array((9, 50), "float32"), np.zeros((9,), "float32")
    run_kernel(main, x, y)
    values = x.astype(np.float64)
    if start is not None:
        values = np.concatenate([values, np.full((9, 1), start)], axis=1)
    assert_close(y, {"sum": np.sum, "max": np.max, "min": np.min}[op](values, axis=1))
