"""A tensor stored by columns is read along them, in vectors.

Its tile is stored by columns too where nothing else is written that way, so that copies need not
wait and `ldmatrix` reads it; else a vector goes through registers to places that lie apart.
"""

from __future__ import annotations

import re

import pytest

import tilelang.language as T
from tests.gpu.gemms import columns_of_b
from tests.gpu.lowering import source_of
from tilelang.layouts.infer import infer_layouts


@pytest.mark.parametrize(
    ("dtype", "accum"),
    [("float16", "float32"), ("int8", "int32"), ("float32", "float32"), ("float64", "float64")],
)
def test_an_operand(dtype: str, accum: str) -> None:
    function = columns_of_b(dtype, accum).function
    (launch,) = infer_layouts(function, "cuda:sm_80").launches
    tile = next(e for e in launch.buffers if e.name == "B_s")
    assert tile.why.startswith("by columns, as it is written")
    assert max(use.degree for use in tile.bank_uses) == 1
    text = source_of(function).text
    assert re.search(r"tl::cp_async<16>\(.*&B\[", text), text
    if dtype != "float64":
        assert re.search(r"tl::ldmatrix_x4\(&B_s_r", text), text


def test_a_tile_written_by_rows_too() -> None:
    @T.prim_func
    def main(
        A: T.StridedTensor((64, 64), (1, 64), "float16"), B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A, s)
            T.copy(s, C)
            T.copy(B, s)
            T.copy(s, C)

    text = source_of(main.function).text
    # Eight neighbours of a column at once, through registers.
    assert re.search(r"tl::store\(&s_r\w*\[0\], tl::load<8>\(&A\[", text), text
    assert re.search(r"tl::load<8>\(&B\[", text), text
    assert "cp_async" not in text
