"""What tools ask an answer: by name, by line, in short, why, and drawn."""

from __future__ import annotations

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layouts import LayoutMap, infer_layouts
from tilelang.program.stmt import Function
from tilelang_diagnostics import CompileError

KERNEL = """
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        peak = T.alloc_fragment((64,), "float32")
        T.copy(A, s)
        T.clear(acc)
        T.gemm(s, s, acc, policy=T.GemmWarpPolicy.FullRow)
        T.reduce_max(acc, peak, dim=1)
        for i, j in T.Parallel(64, 64):
            acc[i, j] -= peak[i]
        T.copy(acc, C)
"""


def function_of(text: str) -> Function:
    (parsed,) = parse_static(kernel_text(text), "k.py")
    assert parsed.function is not None
    return parsed.function


def layouts_of(text: str, target: str = "cuda:sm_80") -> LayoutMap:
    return infer_layouts(function_of(text), target)


def test_by_name() -> None:
    found = layouts_of(KERNEL)
    acc = found.of("acc")
    assert isinstance(acc.layout, Fragment)
    assert acc.short == "thread=i//16*32 + i%8*4 + j//2%4"
    assert acc.because == "required by T.gemm(s, s, acc) at k.py:12:9"
    assert (acc.registers, acc.threads, acc.shape, acc.dtype) == (32, 128, ("64", "64"), "float32")
    assert found.get("nothing") is None
    with pytest.raises(KeyError):
        found.of("nothing")


def test_why_goes_down_to_what_nothing_derived() -> None:
    assert layouts_of(KERNEL).of("peak").why == (
        "peak: thread=i//16*32 + i%8*4 + rep, slot=i//8%2\n"
        "  from acc, by T.reduce_max(acc, peak) at k.py:13:9\n"
        "acc: thread=i//16*32 + i%8*4 + j//2%4\n"
        "  required by T.gemm(s, s, acc) at k.py:12:9"
    )


def test_shared_tiles_say_their_conflicts() -> None:
    tile = layouts_of(KERNEL).of("s")
    assert isinstance(tile.layout, Layout)
    assert (tile.short, tile.conflict_degree) == ("(i*64 + j) ^ i%8*8", 1)
    assert [str(use) for use in tile.bank_uses] == [
        "T.copy(A, s): no conflicts",
        "T.gemm(s, s, acc): no conflicts",
        "T.gemm(s, s, acc): no conflicts",
    ]
    assert tile.why.startswith("128-byte swizzle: no bank conflicts in 3 uses")


def test_loops_by_line() -> None:
    found = layouts_of(KERNEL)
    (loop,) = found.at_line(14)
    assert (loop.name, loop.kind) == ("i, j at line 14", "loop")
    assert loop.short == found.of("acc").short
    assert found.at_line(11) == ()


def test_drawing() -> None:
    acc = layouts_of(KERNEL).of("acc")
    assert acc.draw(max_rows=2, max_columns=4).splitlines() == [
        "      0    1    2    3    …",
        " 0  0:0  0:1  1:0  1:1    …",
        " 1  4:0  4:1  5:0  5:1    …",
        " …",
        "2 of 64 rows, 4 of 64 columns",
    ]
    assert acc.draw_svg().startswith("<svg")


def test_a_cpu_is_answered_for_a_nominal_gpu() -> None:
    on_cpu, on_gpu = layouts_of(KERNEL, "cpu"), layouts_of(KERNEL, "cuda:sm_80")
    assert on_cpu.note == "a CPU needs no thread layouts; these are those of cuda:sm_80"
    assert on_gpu.note == "for cuda:sm_80"
    assert [str(e) for e in on_cpu] == [str(e) for e in on_gpu]


def test_an_answer_is_remembered() -> None:
    function = function_of(KERNEL)
    assert infer_layouts(function, "cuda:sm_80") is infer_layouts(function, "cuda:sm_80")
    # Two targets without layouts of their own, and one that spells the nominal one otherwise.
    assert infer_layouts(function, "cpu") is infer_layouts(function, "llvm")


def test_targets_that_do_not_exist_are_refused() -> None:
    with pytest.raises(CompileError) as refusal:
        layouts_of(KERNEL, "cuda:sm_12345")
    assert {d.code for d in refusal.value.diagnostics} == {"TL404"}


def test_several_launches_and_no_threads() -> None:
    found = layouts_of(
        """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
            with T.Kernel(1, threads=128):
                x = T.alloc_fragment((256,), "float32")
                T.copy(A, x)
                T.copy(x, B)
            with T.Kernel(1, threads=256):
                y = T.alloc_fragment((256,), "float32")
                T.copy(B, y)
                T.copy(y, A)
        """
    )
    assert [launch.threads for launch in found.launches] == [128, 256]
    assert found.of("x").short == "thread=i//2, slot=i%2"
    assert found.of("y").short == "thread=i, slot=0"


def test_a_kernel_without_tiles_has_no_entries() -> None:
    found = layouts_of(
        """
        @T.prim_func
        def main(A: T.Tensor((256,), "float32")):
            with T.Kernel(2, threads=128) as bx:
                A[bx * 128 + T.get_thread_binding()] = 1.0
        """
    )
    assert (list(found), found.diagnostics) == ([], ())
