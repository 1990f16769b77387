"""Layouts of the author's are checked for every target, at their place."""

from __future__ import annotations

import pytest

from tests.layouts.marked import check_marked
from tests.support.markers import check_clean

HEAD = """
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32, 32), "float32")
            x = T.alloc_fragment((32, 32), "float32")
"""
TAIL = """
            T.copy(A, s)
            T.copy(s, x)
            T.copy(x, B)
"""


def annotated(text: str) -> str:
    return f"{HEAD}            {text}\n{TAIL}"


WRONG = {
    "two elements in one place": (
        "T.annotate_layout(«{s: T.Layout((32, 32), lambda i, j: i + j)}»)",
        "error[TL302] the layout of `s` puts `s[0, 1]` and `s[1, 0]` in one place",
    ),
    "a function with two elements in one place": (
        "T.annotate_layout(«{s: lambda i, j: (i // 2, j)}»)",
        "error[TL302] the layout of `s` puts `s[0, 0]` and `s[1, 0]` in one place",
    ),
    "two elements in one register": (
        "T.annotate_layout(«{x: T.Fragment((32, 32), lambda i, j: (i * 4 + j // 8, j % 4))}»)",
        "error[TL302] the layout of `x` puts `x[0, 0]` and `x[0, 4]` in one place",
    ),
    "no threads": (
        "T.annotate_layout(«{x: T.Layout((32, 32), lambda i, j: i * 32 + j)}»)",
        "error[TL303] fragment `x` is given a layout that names no threads",
    ),
    "another shape": (
        "T.annotate_layout(«{s: T.Layout((64, 32), lambda i, j: i * 32 + j)}»)",
        "error[TL308] a layout for (64, 32) is given to `s` (32, 32)",
    ),
    "more threads than the block has": (
        "«T.annotate_layout({x: T.Fragment((32, 32), lambda i, j: (i * 8 + j // 4, j % 4))})»",
        "error[TL308] the layout of `x` names thread 255, the block has 128 threads",
    ),
    "two layouts": (
        "T.annotate_layout({s: lambda i, j: (i, j)})\n"
        "            «T.annotate_layout({s: lambda i, j: (i, j ^ i)})»",
        "error[TL312] `s` is given two layouts",
    ),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", None])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_annotation(name: str, target: str | None) -> None:
    text, says = WRONG[name]
    check_marked(annotated(text), says, target)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", None])
@pytest.mark.parametrize(
    "text",
    [
        "T.annotate_layout({s: lambda i, j: (i, j ^ i)})",
        "T.annotate_layout({s: T.Layout((32, 32), lambda i, j: i * 33 + j)})",
        "T.annotate_layout({x: T.Fragment((32, 32), lambda i, j: (i * 4 + j // 8, j % 8))})",
        "T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})",
    ],
)
def test_right_annotation(text: str, target: str | None) -> None:
    check_clean(annotated(text), target=target)


def looped(layout: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(1, threads=128):
            {layout}
                B[i, j] = A[i, j]
    """


LOOPS = {
    "another rank": (
        "for i, j in T.Parallel(8, 32, loop_layout=«T.Fragment((256,), lambda i: (i % 128, 0))»):",
        "error[TL313] the loop layout",
    ),
    "another shape": (
        "«for i, j in T.Parallel(8, 32, loop_layout=T.Fragment((4, 32), lambda i, j: (i * 32 + j, "
        "0)))»:",
        "error[TL313] the loop layout is made for 4 x 32 iterations, the loop has 8 x 32",
    ),
    "two iterations at once": (
        "«for i, j in T.Parallel(8, 32, loop_layout=T.Fragment((8, 32), lambda i, j: (i * 4 + j % "
        "4, 0)))»:",
        "error[TL302] the layout of the loop gives iterations [0, 0] and [0, 4] to thread 0",
    ),
    "more threads than the block has": (
        "«for i, j in T.Parallel(8, 32, loop_layout=T.Fragment((8, 32), lambda i, j: (i * 32 + j, "
        "0)))»:",
        "error[TL308] the layout of the loop names thread 255, the block has 128 threads",
    ),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("name", LOOPS)
def test_wrong_loop_layout(name: str, target: str) -> None:
    text, says = LOOPS[name]
    check_marked(looped(text), says, target)


def test_right_loop_layout() -> None:
    layout = "T.Fragment((8, 32), lambda i, j: (i * 16 + j // 2, j % 2))"
    text = looped(f"for i, j in T.Parallel(8, 32, loop_layout={layout}):")
    check_clean(text, target="cuda:sm_80")


def test_a_tile_given_as_it_is_stored_in_columns() -> None:
    """A (K, N) slice in shared memory with the author's own layout (first hours, S4)."""
    check_clean(
        """
        @T.prim_func
        def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((128, 256), "float16"),
                 C: T.Tensor((64, 64), "float32")):
            with T.Kernel(4, threads=128) as bx:
                A_shared = T.alloc_shared((64, 32), "float16")
                B_shared = T.alloc_shared((32, 64), "float16")
                acc = T.alloc_fragment((64, 64), "float32")
                T.annotate_layout({
                    B_shared: T.Layout((32, 64), lambda k, n: k * 64 + (n ^ (k % 8 * 8)))
                })
                T.copy(A, A_shared)
                T.copy(B[32:64, bx * 64 : bx * 64 + 64], B_shared)
                T.clear(acc)
                T.gemm(A_shared, B_shared, acc)
                T.copy(acc, C)
        """,
        target="cuda:sm_80",
    )
