"""Complaints whose answer is in the code for a GPU: what is read how, and what waits for what."""

from __future__ import annotations

import re

import pytest

import tilelang.language as T
from tests.gpu import conversions
from tests.gpu.lowering import source_of
from tilelang.layout import Layout, make_swizzled_layout
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.layout_map import Entry
from tilelang.program.stmt import Function
from tilelang_diagnostics import CompileError


def shared_tiles(function: Function, target: str) -> dict[str, Entry]:
    (launch,) = infer_layouts(function, target).launches
    return {e.name: e for e in launch.buffers if e.kind == "shared"}


def test_17_a_turned_operand_on_hopper() -> None:
    """B is [64, 16] with 256 threads: no canonical layout of WGMMA, and none is needed."""
    text = source_of(conversions.turned_operand().function, "sm_90a").text
    assert "tl::mma_m16n8k16_f32_f16_f16" in text
    assert "tl::ldmatrix_x2_trans" in text or "tl::ldmatrix_x4_trans" in text


@pytest.mark.parametrize(("threads", "writers"), [(512, 32), (64, 48)])
def test_30_reads_wait_for_conditional_writes(threads: int, writers: int) -> None:
    text = source_of(conversions.few_threads_write(threads, writers).function).text
    written = text.index("&s[tx]") if "&s[tx]" in text else text.index("s[tx] =")
    read = text.index(f"s[tx % {writers}]")
    between = text[written:read]
    assert "__syncthreads" in between or "tl::sync_threads" in between, text
    # The next round writes what this one reads.
    assert len(re.findall(r"tl::sync_threads\(\)|__syncthreads\(\)", text)) == 2, text


def s4(layout: object) -> T.PrimFunc:
    @T.prim_func
    def main(
        A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            if layout is not None:
                T.annotate_layout({b: layout})
            T.clear(c)
            for k in T.serial(3):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32 : (k + 1) * 32, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


def test_s4_a_slice_without_a_layout_gets_a_swizzle() -> None:
    function = s4(None).function
    tile = shared_tiles(function, "cuda:sm_80")["b"]
    assert isinstance(tile.layout, Layout)
    assert tile.layout != Layout.row_major((32, 64))
    assert max(use.degree for use in tile.bank_uses) == 1
    assert "tl::ldmatrix_x4_trans" in source_of(function).text


def test_s4_the_authors_layout_is_honoured() -> None:
    given = Layout((32, 64), lambda k, n: k * 64 + ((n // 8) ^ (k % 8)) * 8 + n % 8)
    function = s4(given).function
    assert shared_tiles(function, "cuda:sm_80")["b"].layout == given
    assert "tl::ldmatrix_x4_trans" in source_of(function).text


def test_s4_the_authors_layout_is_checked() -> None:
    with pytest.raises(CompileError, match="TL302"):
        source_of(s4(Layout((32, 64), lambda k, n: k * 64 + n // 2)).function)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("swizzled", [False, True])
def test_s6_double_precision_without_conflicts(swizzled: bool, arch: str) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float64"), B: T.Tensor((64, 64), "float64"),
        C: T.Tensor((64, 64), "float64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float64")
            b = T.alloc_shared((32, 64), "float64")
            c = T.alloc_fragment((64, 64), "float64")
            if swizzled:
                T.annotate_layout({
                    a: make_swizzled_layout(a), b: make_swizzled_layout(b, k_major=False),
                })  # fmt: skip
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    for tile in shared_tiles(main.function, f"cuda:{arch}").values():
        assert max(use.degree for use in tile.bank_uses) == 1, tile.why
    text = source_of(main.function, arch).text
    assert re.search(r"tl::mma_m(8n8k4|16n8k4)_f64", text)
    assert "tl::cp_async" in text


def test_s10_a_column_major_operand_is_read_along_its_columns() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"), B: T.StridedTensor((256, 64), (1, 256), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(4):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    assert not infer_layouts(main.function, "cuda:sm_80").diagnostics
    text = source_of(main.function).text
    # Eight neighbours of a column at once, and the lanes of a warp along it.
    assert re.search(r"tl::load<8>\(&B\[", text), text
