"""T.gemm: transposes, dtypes, scopes, and clearing the accumulator."""

import numpy as np
import pytest

import tilelang.language as T
from tests.support.lowering import assert_close, random_array, run_kernel

M, N, K = 32, 48, 16


def kernel(dtype, accum, transpose_A=False, transpose_B=False, clear=False, scopes="ss"):
    a_shape = (K, M) if transpose_A else (M, K)
    b_shape = (N, K) if transpose_B else (K, N)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), accum)):
        with T.Kernel(1, threads=128) as _:
            a = (
                T.alloc_shared(a_shape, dtype)
                if scopes[0] == "s"
                else T.alloc_fragment(a_shape, dtype)
            )
            b = (
                T.alloc_shared(b_shape, dtype)
                if scopes[1] == "s"
                else T.alloc_fragment(b_shape, dtype)
            )
            c = T.alloc_fragment((M, N), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C, c)
            T.gemm(a, b, c, transpose_A=transpose_A, transpose_B=transpose_B, clear_accum=clear)
            T.copy(c, C)

    return main


def product(x, y, transpose_A=False, transpose_B=False):
    wide = [v.astype(np.float64) if v.dtype.kind == "f" else v.astype(np.int64) for v in (x, y)]
    return (wide[0].T if transpose_A else wide[0]) @ (wide[1].T if transpose_B else wide[1])


@pytest.mark.parametrize("clear", [False, True], ids=["accumulate", "clear"])
@pytest.mark.parametrize("transpose_B", [False, True], ids=["B", "Bt"])
@pytest.mark.parametrize("transpose_A", [False, True], ids=["A", "At"])
def test_transposes(transpose_A, transpose_B, clear):
    x = random_array((K, M) if transpose_A else (M, K), "float32")
    y = random_array((N, K) if transpose_B else (K, N), "float32", 1)
    z = random_array((M, N), "float32", 2)
    want = product(x, y, transpose_A, transpose_B) + (0 if clear else z.astype(np.float64))
    run_kernel(kernel("float32", "float32", transpose_A, transpose_B, clear), x, y, z)
    assert_close(z, want)


@pytest.mark.parametrize("scopes", ["ss", "fs", "sf", "ff"])
@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("float16", "float32"), ("float16", "float16"), ("float64", "float64"), ("int8", "int32")],
)
def test_dtypes_and_scopes(dtype, accum, scopes):
    x, y, z = random_array((M, K), dtype), random_array((K, N), dtype, 1), np.zeros((M, N), accum)
    run_kernel(kernel(dtype, accum, scopes=scopes), x, y, z)
    assert_close(z, product(x, y))


def test_accumulator_cleared_on_the_first_step_only():
    @T.prim_func
    def main(
        A: T.Tensor((M, 3 * K), "float32"),
        B: T.Tensor((3 * K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, K), "float32")
            b = T.alloc_shared((K, N), "float32")
            c = T.alloc_fragment((M, N), "float32")
            T.fill(c, 1000.0)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * K], a)
                T.copy(B[k * K, 0], b)
                T.gemm(a, b, c, clear_accum=k == 0)
            T.copy(c, C)

    x, y = random_array((M, 3 * K), "float32"), random_array((3 * K, N), "float32", 1)
    z = np.zeros((M, N), "float32")
    run_kernel(main, x, y, z)
    assert_close(z, product(x, y))
