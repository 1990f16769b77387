"""Vectorised loops become the widest legal vectors, or plain loops."""

import pytest

import tilelang.language as T
from tests.support.device import device_func
from tests.support.lowering import body_text
from tilelang.ir import tirx
from tilelang.ir.visit import collect

m = T.dynamic("m")
k = T.dynamic("k")


def widths(kernel) -> list[tuple[str, int]]:
    """Kind and extent of each loop, outermost first."""
    found = []
    for loop in collect(device_func(kernel).body, tirx.For):
        kind = {0: "serial", 2: "vector", 3: "unroll"}[int(loop.kind)]
        found.append((kind, int(loop.extent.value)))
    return found


def copy(shape, dtype, extent, index, source=None):
    """B[index(t, v)] = A[source(t, v)] for v in a vectorised loop."""
    source = source or index

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(4, threads=64) as bx:
            t = T.get_thread_binding()
            for v in T.vectorized(extent):
                B[index(bx, t, v)] = A[source(bx, t, v)]

    return main


def row(stride, start=0):
    return lambda bx, t, v: t * stride + v + start


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (copy((4096,), "float32", 4, row(4)), [("vector", 4)]),
        # More than 16 bytes are several accesses of one vector.
        (copy((4096,), "float32", 16, row(16)), [("vector", 16)]),
        (copy((4096,), "float16", 8, row(8)), [("vector", 8)]),
        (copy((4096,), "int8", 16, row(16)), [("vector", 16)]),
        # Alignment: only what certainly divides the address.
        (copy((4096,), "float32", 4, row(2)), [("unroll", 2), ("vector", 2)]),
        (copy((4096,), "float32", 4, row(4, start=2)), [("unroll", 2), ("vector", 2)]),
        (copy((4096,), "float32", 4, row(4, start=1)), [("unroll", 4)]),
        # Places that are not neighbours are not a vector; gathering is legal, scattering is not.
        (copy((4096,), "float32", 4, lambda bx, t, v: t * 8 + v * 2), [("unroll", 4)]),
        (copy((4096,), "float32", 4, row(4), lambda bx, t, v: t + v * 64), [("vector", 4)]),
        (copy((4096,), "float32", 4, lambda bx, t, v: t), [("unroll", 4)]),
        # A swizzle moves whole vectors.
        (copy((4096,), "float16", 8, lambda bx, t, v: (t // 8) * 64 + ((t % 8) ^ bx) * 8 + v),
         [("vector", 8)]),
        (copy((4096,), "float16", 8, lambda bx, t, v: (t * 8 + v) ^ bx), [("unroll", 8)]),
        # Rows of a matrix: the row stride has to keep the alignment.
        (copy((64, 128), "float16", 8, lambda bx, t, v: (t, bx * 8 + v)), [("vector", 8)]),
        (copy((64, 36), "float16", 8, lambda bx, t, v: (t, bx * 8 + v)),
         [("unroll", 2), ("vector", 4)]),
        (copy((64, 33), "float16", 8, lambda bx, t, v: (t, bx * 8 + v)), [("unroll", 8)]),
        (copy((m, k), "float16", 8, lambda bx, t, v: (t, bx * 8 + v)), [("unroll", 8)]),
    ],
)  # fmt: skip
def test_width(kernel, expected):
    assert widths(kernel) == expected


def test_an_assumption_about_a_stride_is_used():
    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((m, k), "float16")):
        T.assume(k % 8 == 0)
        with T.Kernel(4, threads=64) as bx:
            t = T.get_thread_binding()
            for v in T.vectorized(8):
                B[t, bx * 8 + v] = A[t, bx * 8 + v]

    assert widths(main) == [("vector", 8)]


def test_a_guard_is_asked_once():
    """Four neighbours are inside or outside together when 4 divides the bound."""

    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            for v in T.vectorized(4):
                B[t * 4 + v] = T.if_then_else(t * 4 + v < 100, A[t * 4 + v], T.float32(0))

    text = body_text(device_func(main))
    assert "T.if_then_else(tx * 4 < 100, A[tx * 4 + v], 0.0)" in text
    assert widths(main) == [("vector", 4)]


def test_a_guard_that_cuts_a_vector_keeps_the_loop():
    @T.prim_func
    def main(A: T.Tensor((99,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            for v in T.vectorized(4):
                if t * 4 + v < 99:
                    A[t * 4 + v] = B[t * 4 + v]

    assert widths(main) == [("unroll", 4)]


def test_a_lane_that_reads_its_neighbour_keeps_the_order():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            for v in T.vectorized(4):
                A[t * 4 + v + 4] = A[t * 4 + v] + 1.0

    assert widths(main) == [("unroll", 4)]


def test_in_place_update_is_a_vector():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            for v in T.vectorized(4):
                A[t * 4 + v] = A[t * 4 + v] + 1.0

    assert widths(main) == [("vector", 4)]


def test_names_of_scalars_are_no_obstacle():
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 128), "float16")):
        with T.Kernel(4, threads=64) as bx:
            t = T.get_thread_binding()
            for v in T.vectorized(8):
                row, column = t, bx * 8 + v
                B[row, column] = A[row, column]

    assert widths(main) == [("vector", 8)]


def test_packed_elements_fill_whole_bytes():
    @T.prim_func
    def main(A: T.Tensor((512,), "int4"), B: T.Tensor((512,), "int4")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            for v in T.vectorized(16):
                A[t * 16 + v] = B[t * 16 + v]
            for v in T.vectorized(2):
                A[t * 2 + v + 1] = B[t * 2 + v + 1]

    assert widths(main) == [("vector", 16), ("unroll", 2)]
