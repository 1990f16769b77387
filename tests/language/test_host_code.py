"""Python around and inside kernels that decides on values: with values it decides, without it is
read on all its paths, and a helper that raises is the fault of the call."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang.language.frontend import parse_static

TEXT = """\
import tilelang.language as T


def factor(dtype):
    if dtype == "float16":
        return 1.0
    elif dtype in ("bfloat16", "float32"):
        return 2.0
    else:
        raise ValueError(f"no factor for {dtype}")


def checked(flag, n):
    if flag is None:
        raise ValueError("no flag")
    if not isinstance(n, int) or type(n) is not int:
        raise TypeError("n")
    if any([n % 2 == 1, n > 512]) or n not in (64, 128):
        raise ValueError(f"n is {n}")
    if str(n) == "96":
        raise ValueError
    return 3


def factory(M, N, dtype, flag, mode):
    assert dtype in ("float16", "float32", "int8")
    before = factor(dtype)
    name = f"{dtype}"
    widths = [w for w in (1, 2, 4) if N % w == 0]

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), name)):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            a = factor(dtype)
            b = checked(flag, N)
            if mode == "fast":
                c = 2
            elif mode == "slow" and flag is not None:
                c = 4
            else:
                raise ValueError(mode)
            d = 1 if flag is None else 2
            e = widths[-1] * max(M, N)
            for i, j in T.Parallel(32, N):
                B[bx * 32 + i, j] = A[bx * 32 + i, j] * a * b * c * d * e

    return main
"""
GOOD: dict[str, Any] = {"M": 64, "N": 64, "dtype": "float16", "flag": True, "mode": "fast"}


def said(values: dict[str, Any]) -> list[tuple[str, str]]:
    result = parse_static(TEXT, "kernel.py", values=values)
    assert len(result) == 1
    return [(d.code, d.message) for d in result.all_diagnostics]


@pytest.mark.parametrize("known", [(), ("M",), ("N",), ("dtype",), ("flag", "mode"), tuple(GOOD)])
def test_values_nobody_has_chosen_decide_nothing(known: tuple[str, ...]) -> None:
    assert said({name: GOOD[name] for name in known}) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dtype": "int8"}, "`factor` raised ValueError: no factor for int8"),
        ({"flag": None}, "`checked` raised ValueError: no flag"),
        ({"N": "64"}, "`checked` raised TypeError: n"),
        ({"N": 96}, "`checked` raised ValueError: n is 96"),
        ({"N": 65}, "`checked` raised ValueError: n is 65"),
        ({"mode": "odd"}, "the kernel raises ValueError: odd while it is traced"),
    ],
)
def test_values_that_are_refused(wrong: dict[str, Any], message: str) -> None:
    assert ("TL183", message) in said({**GOOD, **wrong})


def test_both_places_are_shown() -> None:
    (found,) = parse_static(TEXT, "kernel.py", values={**GOOD, "dtype": "int8"}).all_diagnostics
    assert found.span is not None and found.labels[0].span is not None
    lines = TEXT.split("\n")
    assert lines[found.span.line - 1].strip() == "a = factor(dtype)"
    assert lines[found.labels[0].span.line - 1].strip().startswith("raise ValueError(f")
