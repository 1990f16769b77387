"""Reductions and scans whose output may not hold the result (TL247), and those whose output does."""

from __future__ import annotations

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static

KERNEL = """
@T.prim_func
def main(A: T.Tensor((32, 64), "{src}"), B: T.Tensor({shape}, "{dst}")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_fragment((32, 64), "{src}")
        out = T.alloc_fragment({shape}, "{dst}")
        T.copy(A, tile)
        {op}
        T.copy(out, B)
"""
OPS = {
    "T.reduce_max": "T.reduce_max(tile, out, dim=1)",
    "T.reduce_min": 'T.reduce(tile, out, "min", dim=1)',
    "T.reduce_sum": "T.reduce_sum(tile, out, dim=1)",
    "T.cummax": "T.cummax(tile, out, dim=1)",
}
NARROW = (
    ("int32", "int8", "int8 holds -128 … 127, and what is outside wraps around"),
    ("int32", "uint32", "uint32 holds 0 … 4294967295, and what is outside wraps around"),
    ("uint8", "int8", "int8 holds -128 … 127"),
    ("int32", "float16", "float16 holds at most 65504, and int32 more"),
    ("float32", "float16", "float16 holds at most 65504, and float32 more"),
    ("bfloat16", "float8_e4m3fn", "float8_e4m3fn holds at most 448, and bfloat16 more"),
    ("float32", "int32", "it is rounded towards zero, and int32 holds -2147483648 … 2147483647"),
)
WIDE = (
    ("int8", "int32"), ("int32", "int32"), ("uint8", "int32"), ("int32", "float32"),
    ("float16", "float32"), ("float32", "bfloat16"), ("float64", "float32"), ("int8", "float16"),
)  # fmt: skip


def found(op: str, src: str, dst: str) -> list[tuple[str, str, str]]:
    shape = "(32, 64)" if "cum" in op else "(32,)"
    text = kernel_text(KERNEL.format(src=src, dst=dst, shape=shape, op=OPS[op]))
    (parsed,) = parse_static(text, "kernel.py")
    return [(d.code, d.message, d.label) for d in parsed.diagnostics]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("src", "dst", "why"), NARROW, ids=lambda x: x if " " not in x else "")
def test_an_output_that_may_not_hold_the_result(op: str, src: str, dst: str, why: str) -> None:
    ((code, message, label),) = found(op, src, dst)
    assert (code, message) == ("TL247", f"`{op}` of `tile` ({src}) may not fit `out` ({dst})")
    assert label.startswith(why)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("src", "dst"), WIDE)
def test_an_output_that_does(op: str, src: str, dst: str) -> None:
    assert found(op, src, dst) == []
