"""Macros and helpers that would expand for ever, or nearly: one finding, soon."""

from __future__ import annotations

import pytest

from tilelang.language import inlining
from tilelang.language.frontend import parse_static

KERNEL = """
@T.prim_func
def f(A: T.Tensor((128,), 'float32')):
    with T.Kernel(1, threads=128) as bx:
        {call}
"""
# Each function calls those that are named with it; the last line is the kernel's.
CALLS = {
    "two macros": ({"m": "nn", "n": "mm"}, "m(A)", ["TL180"]),
    "three macros": ({"m": "nop", "n": "opm", "o": "pmn", "p": "mno"}, "m(A)", ["TL180"]),
    "itself, thrice": ({"m": "mmm"}, "m(A)", ["TL180"]),
    "two kernels' worth": ({"m": "mm", "n": "nn"}, "m(A); n(A); m(A)", ["TL180", "TL180"]),
}


def codes(text: str) -> list[str]:
    found = parse_static("import tilelang.language as T\n" + text, "k.py").all_diagnostics
    return [d.code for d in found]


@pytest.mark.parametrize("case", CALLS)
def test_recursion_is_found_once(case: str) -> None:
    called, call, expected = CALLS[case]
    macros = "".join(
        f"@T.macro\ndef {name}(A):\n" + "".join(f"    {other}(A)\n" for other in others)
        for name, others in called.items()
    )
    assert codes(macros + KERNEL.format(call=call)) == expected


def test_a_chain_that_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MAX_INLINED_CALLS", 500)
    chain = "".join(
        f"@T.macro\ndef m{i}(A):\n    m{i + 1}(A)\n    m{i + 1}(A)\n" for i in range(24)
    )
    last = "@T.macro\ndef m24(A):\n    A[0] = 1.0\n"
    assert codes(chain + last + KERNEL.format(call="m0(A)")) == ["TL148"]


def test_a_helper_too_long_to_follow_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlining, "MAX_INLINED_CALLS", 500)
    fibonacci = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
    assert codes(fibonacci + KERNEL.format(call="A[fib(40) % 128] = 1.0")) == []
    assert codes(fibonacci + KERNEL.format(call="A[fib(12)] = 1.0")) == ["TL220"]


def test_recursion_that_ends_is_no_recursion() -> None:
    halves = (
        "@T.macro\ndef m(A, n):\n    if n == 0:\n        A[0] = 1.0\n    else:\n"
        "        m(A, n - 1)\n        m(A, n - 1)\n"
    )
    assert codes(halves + KERNEL.format(call="m(A, 8)")) == []
