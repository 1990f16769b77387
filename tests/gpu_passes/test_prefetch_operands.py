"""Which loops load the first operands of an iteration in the one before, and what they become."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import source_of
from tests.support.lowering import body_text
from tilelang.compiler import lower_function
from tilelang.ir.verify import VerifyObserver
from tilelang.options import CompileOptions
from tilelang.target import parse_target

n_rows = T.dynamic("n_rows")


def lowered(kernel: Any, target: str = "cuda:sm_80") -> str:
    """The launch of the lowered kernel."""
    made = lower_function(
        kernel.function, parse_target(target), CompileOptions(), [VerifyObserver()]
    )
    return body_text(made.func)


def shape_of(text: str) -> list[str]:
    """Waits, barriers, loads of operands, products and the pipelined loop, in order."""
    words = {
        "T.Pipelined": "loop", "cp_async_wait": "wait", "sync_threads": "sync",
        "cp_async_commit": "commit", "ldmatrix": "load", "mma_": "multiply",
    }  # fmt: skip
    found = []
    for line in text.splitlines():
        for mark, word in words.items():
            if mark in line and (not found or found[-1] != word):
                found.append(word)
    return found


def gemm(
    tile: tuple[int, int, int] = (128, 128, 32), stages: int = 3, threads: int = 128,
    dtype: str = "float16", after: bool = False, blocks: int = 8, row: Any = None,
) -> Any:  # fmt: skip
    m, n, k = tile

    @T.prim_func
    def main(
        A: T.Tensor((m, k * blocks if row is None else row), dtype),
        B: T.Tensor((k * blocks, n), dtype),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            A_s = T.alloc_shared((m, k), dtype)
            B_s = T.alloc_shared((k, n), dtype)
            C_l = T.alloc_fragment((m, n), "float32")
            T.clear(C_l)
            for i in T.Pipelined(blocks, num_stages=stages):
                T.copy(A[0, i * k], A_s)
                T.copy(B[i * k, 0], B_s)
                T.gemm(A_s, B_s, C_l)
                if after:
                    for x, y in T.Parallel(m, n):
                        C_l[x, y] *= 0.5
            T.copy(C_l, C)

    return main


AS_WRITTEN = ["loop", "wait", "sync", "commit", "load", "multiply"]


def test_the_next_iteration_begins_in_this_one() -> None:
    found = shape_of(lowered(gemm()))
    assert found == [
        "commit", "wait", "sync", "load",
        "loop", "load", "commit", "multiply", "wait", "sync", "load", "multiply",
    ]  # fmt: skip


def test_steps_between_are_a_loop() -> None:
    text = lowered(gemm((128, 128, 64)))
    found = shape_of(text)
    assert found[found.index("loop"):] == [
        "loop", "load", "commit", "multiply", "load", "multiply", "wait", "sync", "load",
        "multiply",
    ]  # fmt: skip
    assert re.search(r"for \w+ in T.unroll\(1, 3\)", text)


def test_the_version_in_force_stands_apart_in_an_address() -> None:
    """What all iterations share is then computed once."""
    text = source_of(gemm().function).text
    loads = re.findall(r"tl::ldmatrix_x4(?:_trans)?\(.*tl::at\((.*?), ", text)
    assert set(loads) == {"A_s", "B_s", *(f"{t}_s + {t}_s_at{n}" for t in "AB" for n in ("", "_1"))}


def test_two_sets_of_registers() -> None:
    text = lowered(gemm())
    sizes = dict(re.findall(r"(\w+) = T.alloc_local\(\((\d+),\), 'float16'", text))
    assert sizes["A_s_r"] == sizes["B_s_r"] == "64"


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (gemm(stages=2), "a copy would have to arrive within the iteration that started it"),
        (gemm((128, 128, 16)), "one step: its operands are in use when the next ones come"),
        (gemm(after=True), "registers would be held over other work"),
        (gemm((128, 128, 32), threads=256), "a block less would fit"),
        (gemm(row=n_rows), "rows begin anywhere: copies pass through registers"),
    ],
)
def test_loops_that_stay_as_they_are(kernel: Any, why: str) -> None:
    found = shape_of(lowered(kernel))
    assert found[found.index("loop") :][:6] == AS_WRITTEN, why
