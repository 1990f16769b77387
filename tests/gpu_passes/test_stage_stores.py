"""Which results are written by way of shared memory, and which directly."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import source_of

n = T.dynamic("n")


def product(
    dtype: str = "float16", columns: Any = 256, after: bool = False, stages: int = 2,
    tiles: int = 1, **how: Any,
) -> Any:  # fmt: skip
    """A product whose result goes to a tensor with rows of `columns` elements."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"),
        B: T.Tensor((256, 128), "float16"),
        C: T.Tensor((128, columns), dtype),
        D: T.Tensor((128,), "float16"),
    ):
        with T.Kernel(2, threads=128) as bx:
            A_s = T.alloc_shared((128, 32), "float16")
            B_s = T.alloc_shared((32, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            for _ in T.serial(tiles):
                T.clear(C_l)
                for k in T.Pipelined(8, num_stages=stages):
                    T.copy(A[0, k * 32], A_s)
                    T.copy(B[k * 32, 0], B_s)
                    T.gemm(A_s, B_s, C_l)
                if tiles > 1:
                    T.copy(C_l, C[0, bx * 128])
            if tiles == 1:
                T.copy(C_l, C[0, bx * 128], **how)
            if after:
                for i in T.Parallel(32):
                    D[i] = A_s[0, i]

    return main


def stores(kernel: Any) -> list[tuple[str, int]]:
    """What is stored to, and how many elements at a time, in order."""
    text = source_of(kernel.function).text
    found = re.findall(r"tl::store\(&(\w+)\[.*tl::load<(\d+)>", text)
    return [(name, int(width)) for name, width in found]


def shared_bytes(kernel: Any) -> int:
    (launch,) = source_of(kernel.function).launches
    return int(launch.dynamic_shared)


def test_a_result_fills_sectors() -> None:
    assert stores(product()) == [("C_l_shared", 2), ("C", 8)]


def test_it_takes_the_place_of_the_operands() -> None:
    # Two versions of two tiles of 8 KB; the result has 32 KB.
    assert shared_bytes(product()) == 32768


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (product("float32"), "each quad of threads has a sector"),
        (product(stages=1), "there is less room than the tile needs"),
        (product(after=True), "the operands are still read"),
        (product(tiles=2), "the operands are needed in the next iteration"),
        (product(columns=260), "rows do not begin at multiples of 16 bytes"),
        (product(columns=n), "rows may begin anywhere"),
        (product(coalesced_width=2), "the author said how"),
    ],
)
def test_others_go_directly(kernel: Any, why: str) -> None:
    assert {name for name, _ in stores(kernel)} <= {"C", "A_s", "B_s"}, why
