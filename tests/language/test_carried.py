"""Values that a loop would have to carry from one iteration to the next, in both environments."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.support.markers import check_diagnostics
from tests.support.programs import body_of, in_kernel
from tilelang_diagnostics import CompileError

REFUSED: list[tuple[str, str]] = [
    ("augmented", """
        n = 64
        for i in T.serial(4):
            n += 1
        #   ^ error[TL135] help: `n = T.alloc_var("int32", init=64)`
            B[i] = A[i] + n
     """),
    ("written out, in a range", """
        n = 0.5
        for i in range(4):
            n = n * 2
        #   ^ error[TL135] help: `n = T.alloc_var("float32", init=0.5)`
            B[i] = n
     """),
    ("made of a loop variable", """
        n = 0
        for i in T.unroll(4):
            n = n + i
        #   ^ error[TL135] the Python number 0
            B[i] = n
     """),
    ("while", """
        n = 0
        i = T.alloc_var("int32", init=0)
        while i < 4:
            n += 1
        #   ^ error[TL135]
            i += n
     """),
    ("a branch in a loop", """
        n = 0
        for i in T.serial(4):
            if A[i] > 0:
                n += 1
        #       ^ error[TL135]
     """),
    ("two at once", """
        a, b = 0, 1
        for i in T.serial(4):
            a, b = b, a + b
        #   ^ error[TL135]
     """),
    ("a truth value", """
        flag = False
        for i in T.serial(4):
            flag = not flag
        #   ^^^^ error[TL135] help: `flag = T.alloc_var("bool", init=False)`
     """),
    ("an index of the block", """
        for i in T.serial(4):
            bx += 1
        #   ^^ error[TL135] help: `bx = T.alloc_var("int32", init=bx)`
     """),
]  # fmt: skip

LEGAL: list[tuple[str, str, str]] = [
    ("a list unrolls", "n = 0\nfor x in [1, 2, 3]:\n    n += x\nA[0] = n", "A[0] = 6.0"),
    (
        "bound anew in each iteration",
        "n = 9\nfor i in T.serial(2):\n    n = 1\n    n += 1\n    A[i] = n",
        "for i in T.serial(2):\n    A[i] = 2.0",
    ),
    (
        "the same value",
        "n = 4\nfor i in T.serial(2):\n    n = min(n, 8)\n    A[i] = n",
        "for i in T.serial(2):\n    A[i] = 4.0",
    ),
    (
        "used in its branch only",
        "n = 1\nif A[0] > 0:\n    n += 1\n    A[0] = n",
        "if A[0] > 0.0:\n    A[0] = 2.0",
    ),
    ("once in the launch", "n = 1\nn += 1\nA[0] = n", "A[0] = 2.0"),
]


@pytest.mark.parametrize(("name", "body"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(name: str, body: str) -> None:
    check_diagnostics(in_kernel(body))


@pytest.mark.parametrize(("name", "body", "expect"), LEGAL, ids=[r[0] for r in LEGAL])
def test_legal(name: str, body: str, expect: str) -> None:
    assert body_of(in_kernel(body)) == expect


@tilelang.jit(target="cpu")
def counts(A, B, n=64):
    A: T.Tensor((4,), "float32")
    B: T.Tensor((4,), "float32")
    with T.Kernel(1):
        for i in T.serial(4):
            n += 1
            B[i] = A[i] + n


def test_a_parameter_of_a_live_kernel() -> None:
    with pytest.raises(CompileError) as caught:
        counts(np.ones(4, "float32"), np.ones(4, "float32"))
    (only,) = caught.value.diagnostics
    assert only.code == "TL135"
    assert only.help is not None and 'n = T.alloc_var("int32", init=64)' in only.help
