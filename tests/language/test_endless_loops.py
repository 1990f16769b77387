"""Loops that nothing ends: what they wait for is the thread's own, and stays as it is."""

from __future__ import annotations

import pytest

from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel

ENDLESS = """
    n = T.alloc_var("int32", init=0)
    while n < 4:
        # ^^^^^ warning[TL139] nothing in this loop changes `n`
        B[n] = A[n]
"""
ENDS: list[tuple[str, str]] = [
    ("changed", """
        n = T.alloc_var("int32", init=0)
        while n < 4:
            B[n] = A[n]
            n += 1
    """),
    ("left", """
        n = T.alloc_var("int32", init=0)
        while n < 4:
            if A[n] > 0:
                break
    """),
    ("changed by an operation on tiles", """
        f = T.alloc_fragment((1,), "float32")
        T.clear(f)
        while f[0] < 1:
            T.copy(A[0:1], f)
    """),
    ("changed by what takes its address", """
        f = T.alloc_local((1,), "float32")
        f[0] = 0
        while f[0] < 1:
            T.call_extern("void", "more", T.address_of(f[0]))
    """),
    ("written by others", """
        while A[0] < 1:
            B[0] = 1
    """),
]  # fmt: skip


def test_nothing_changes_what_is_waited_for() -> None:
    check_diagnostics(in_kernel(ENDLESS))


@pytest.mark.parametrize(("about", "body"), ENDS, ids=lambda x: x if "\n" not in x else "")
def test_something_does(about: str, body: str) -> None:
    check_diagnostics(in_kernel(body))
