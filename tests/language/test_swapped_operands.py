"""Operands of a gemm in the wrong order: the advice is to swap them."""

from __future__ import annotations

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static

KERNEL = """
@T.prim_func
def main(A: T.Tensor((64, 32), "float16")):
    with T.Kernel(1, threads=128):
        X = T.alloc_shared({x}, "float16")
        Y = T.alloc_shared({y}, "float16")
        Z = T.alloc_fragment({z}, "float32")
        T.clear(Z)
        T.gemm(X, Y, Z)
"""
SWAP = "the operands fit in the other order: `T.gemm(Y, X, Z)`"


@pytest.mark.parametrize(
    ("x", "y", "z", "code", "advice"),
    [
        ((32, 16), (64, 32), (64, 16), "TL204", SWAP),
        ((32, 64), (64, 32), (64, 64), "TL205", SWAP),
        ((64, 32), (16, 32), (64, 16), "TL204", "transpose_B=True"),
    ],
)
def test_advice(x: object, y: object, z: object, code: str, advice: str) -> None:
    (parsed,) = parse_static(kernel_text(KERNEL.format(x=x, y=y, z=z)), "kernel.py")
    (found,) = [d for d in parsed.diagnostics if d.code == code]
    assert found.help is not None and advice in found.help
