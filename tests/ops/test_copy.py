"""T.copy: extents, ragged edges, dtypes, strides, ranks, padding."""

import numpy as np
import pytest

import tilelang.language as T
from tests.support.lowering import assert_close, lowered, random_array, run_kernel


def roundtrip(shape, tile, dtype, scope):
    """Every tile of A goes through on-chip memory to B."""

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(shape[1], tile[1]), T.ceildiv(shape[0], tile[0])) as (bx, by):
            held = (
                T.alloc_shared(tile, dtype) if scope == "shared" else T.alloc_fragment(tile, dtype)
            )
            T.copy(A[by * tile[0], bx * tile[1]], held)
            T.copy(held, B[by * tile[0], bx * tile[1]])

    return main


@pytest.mark.parametrize("scope", ["shared", "fragment"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(64, 64), (33, 65), (1, 7)], ids=str)
def test_tiles_of_any_tensor(shape, dtype, scope):
    x, y = random_array(shape, dtype), np.zeros(shape, dtype)
    run_kernel(roundtrip(shape, (32, 16), dtype, scope), x, y)
    np.testing.assert_array_equal(y, x)


def test_dynamic_shape():
    @T.prim_func
    def main(
        A: T.Tensor((T.dynamic("m"), 20), "float32"), B: T.Tensor((T.dynamic("m"), 20), "float32")
    ):
        with T.Kernel(T.ceildiv(A.shape[0], 16)) as bx:
            held = T.alloc_shared((16, 20), "float32")
            T.copy(A[bx * 16, 0], held)
            T.copy(held, B[bx * 16, 0])

    for rows in (1, 16, 37):
        x, y = random_array((rows, 20), "float32"), np.zeros((rows, 20), "float32")
        run_kernel(main, x, y, dims={v.name: rows for v in _dims(main)})
        np.testing.assert_array_equal(y, x)


def _dims(kernel):
    return {d for p in kernel.params for d in p.shape if not isinstance(d, int)}


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "float16"), ("float16", "float32"), ("int8", "float32"), ("int32", "int8")],
)
def test_conversion(source, target):
    @T.prim_func
    def main(A: T.Tensor((48,), source), B: T.Tensor((48,), target)):
        with T.Kernel(1) as _:
            held = T.alloc_fragment((48,), target)
            T.copy(A, held)
            T.copy(held, B)

    x, y = random_array((48,), source), np.zeros((48,), target)
    run_kernel(main, x, y)
    assert_close(y, x.astype(target))


def test_strided_source():
    @T.prim_func
    def main(A: T.StridedTensor((8, 12), (40, 3), "float32"), B: T.Tensor((8, 12), "float32")):
        with T.Kernel(1) as _:
            held = T.alloc_shared((8, 12), "float32")
            T.copy(A, held)
            T.copy(held, B)

    storage = random_array((8, 40), "float32")
    y = np.zeros((8, 12), "float32")
    run_kernel(main, storage, y)
    np.testing.assert_array_equal(y, storage[:, 0:36:3])


def test_lower_rank_tile_of_higher_rank_tensor():
    @T.prim_func
    def main(A: T.Tensor((3, 16, 4, 8), "float32"), B: T.Tensor((3, 4, 16, 8), "float32")):
        with T.Kernel(4, 3) as (head, batch):
            held = T.alloc_shared((16, 8), "float32")
            T.copy(A[batch, 0:16, head, :], held)
            T.copy(held, B[batch, head, 0:16, :])

    x, y = random_array((3, 16, 4, 8), "float32"), np.zeros((3, 4, 16, 8), "float32")
    run_kernel(main, x, y)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1, 3))


def test_annotated_value_outside_the_tensor():
    @T.prim_func
    def main(A: T.Tensor((10,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1) as _:
            T.annotate_safe_value({A: -7.0})
            held = T.alloc_shared((16,), "float32")
            T.copy(A[0], held)
            T.copy(held, B)

    x, y = random_array((10,), "float32"), np.zeros((16,), "float32")
    run_kernel(main, x, y)
    np.testing.assert_array_equal(y, np.concatenate([x, np.full(6, -7, np.float32)]))


def test_slice_that_ends_at_run_time():
    """Rows beyond a slice whose length is data are padded, and not written back."""

    @T.prim_func
    def main(A: T.Tensor((32, 4), "float32"), B: T.Tensor((32, 4), "float32"), n: T.int32):
        with T.Kernel(1) as _:
            held = T.alloc_shared((16, 4), "float32")
            T.copy(A[3 : 3 + n, :], held)
            T.copy(held, B[0:16, :])

    x, y = random_array((32, 4), "float32"), np.ones((32, 4), "float32")
    run_kernel(main, x, y, 5)
    np.testing.assert_array_equal(y[:5], x[3:8])
    np.testing.assert_array_equal(y[5:16], 0)
    np.testing.assert_array_equal(y[16:], 1)


def test_guards_only_where_needed():
    from tilelang.passes.context import PassContext

    exact, ragged = PassContext("cpu"), PassContext("cpu")
    lowered(roundtrip((64, 64), (32, 16), "float32", "shared"), context=exact)
    lowered(roundtrip((64, 65), (32, 16), "float32", "shared"), context=ragged)
    assert exact.counters.get("guards", 0) == 0
    assert ragged.counters["guards"] == 2  # one dimension, on the way in and on the way out
