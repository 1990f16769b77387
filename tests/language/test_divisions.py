"""Where an integer should be and a float is, the `/` it comes from is shown, with `//` as a fix."""

from __future__ import annotations

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static

KERNEL = """
N = 128
quarter = N / 4

def make(M):
    block, other = M / 2, 1

    @T.prim_func
    def main(A: T.Tensor(({extent},), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel({grid}, threads=64) as bx:
            half = N / 2
            sure = N // 2
            start = bx * half
            {line}

    return main

kernel = make(128)
"""
# What stands in the kernel, the code, and the division that is shown.
CASES = {
    "C[N / 2] = A[0]": ("TL234", "N / 2"),
    "C[half] = A[0]": ("TL234", "N / 2"),
    "C[0] = A[start + sure]": ("TL234", "N / 2"),
    "C[0] = A[-half]": ("TL234", "N / 2"),
    "C[0] = A[(half + 1) * 2]": ("TL234", "N / 2"),
    "T.copy(A[start], C[sure])": ("TL234", "N / 2"),
    "C[int(quarter)] = A[quarter]": ("TL234", "N / 4"),
    "C[block] = A[0]": ("TL234", "M / 2"),
    "s = T.alloc_shared((quarter,), 'float32')": ("TL215", "N / 4"),
    "s = T.alloc_shared((64, block // 1), 'float32')": ("TL215", "M / 2"),
    "for i in T.Parallel(half): C[i] = A[i]": ("TL116", "N / 2"),
    "for i in range(N / 2): C[i] = A[i]": ("TL183", "N / 2"),
}


def found(line: str, extent: str = "256", grid: str = "2") -> list[tuple[str, str, str]]:
    """Of each error the code, the division, and what the fix makes of that."""
    text = kernel_text(KERNEL.format(line=line, extent=extent, grid=grid))
    lines = text.splitlines()
    out = []
    for error in (d for p in parse_static(text, "kernel.py") for d in p.diagnostics if d.is_error):
        shown = next((n.span for n in error.labels if n.text == "`/` gives a float"), None)
        if shown is None:
            out.append((error.code, "", ""))
            continue
        old = lines[shown.line - 1]
        (edit,) = error.fixes[-1].edits
        new = old[: edit.span.column - 1] + edit.text + old[edit.span.end_column - 1 :]
        out.append((error.code, old[shown.column - 1 : shown.end_column - 1],
                    new[shown.column - 1 : shown.end_column]))  # fmt: skip
    return out


@pytest.mark.parametrize("line", CASES)
def test_the_division_is_shown(line: str) -> None:
    code, division = CASES[line]
    assert found(line) == [(code, division, division.replace("/", "//"))]


def test_in_a_signature_and_a_grid() -> None:
    assert found("C[0] = 1.0", extent="block") == [("TL215", "M / 2", "M // 2")]
    assert found("C[0] = 1.0", grid="M / 64") == [("TL165", "M / 64", "M // 64")]


@pytest.mark.parametrize("line", ["C[1.5] = A[0]", "C[sure] = A[C[0]]"])
def test_a_float_that_nobody_divided(line: str) -> None:
    assert found(line) == [("TL234", "", "")]
