"""Which promises drop guards, and which are told to be of no use (TL229)?

Each row is the body of a kernel that reads `table[index]`: what is said of it, and whether the
access is still tested.
"""

from __future__ import annotations

import pytest

from tests.support.markers import expected_of, kernel_text
from tilelang.compiler import lower_function
from tilelang.ir import tirx
from tilelang.ir.visit import collect
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.passes.scoped import is_lazy_select
from tilelang.target import parse_target

HEAD = """
@T.prim_func
def main(
    rows: T.Tensor((64,), "int32"), table: T.Tensor((1024,), "float32"),
    out: T.Tensor((64,), "float32"),
):
    with T.Kernel(1, threads=64):
        mine = T.alloc_shared((64,), "int32")
        T.copy(rows, mine)
        one = T.alloc_var("int32")
        one = mine[3]
        for i in T.Parallel(64):
"""
KEPT, DROPPED = True, False  # is the access tested?
CASES = {
    "nothing promised": ("out[i] = table[rows[i]] + mine[i] + one", KEPT),
    "an element of a tensor that is only read": (
        "T.assume(0 <= rows[i] and rows[i] < 1024)\nout[i] = table[rows[i]] + mine[i] + one",
        DROPPED,
    ),
    "a name for one": (
        "at = rows[i]\nT.assume(0 <= at and at < 1024)\nout[i] = table[at] + mine[i] + one",
        DROPPED,
    ),
    "promised of the element, used by the name": (
        "at = rows[i]\nT.assume(0 <= rows[i] and rows[i] < 1024)\nout[i] = table[at] + one",
        DROPPED,
    ),
    "a name for an element of a shared tile": (
        "at = mine[i]\nT.assume(0 <= at)\nT.assume(at < 1024)\nout[i] = table[at] + one",
        DROPPED,
    ),
    "a name for a variable": (
        "at = one\nT.assume(0 <= at and at < 1024)\nout[i] = table[at]",
        DROPPED,
    ),
    "half of it": (
        "at = mine[i]\nT.assume(at < 1024)\nout[i] = table[at] + one",
        KEPT,
    ),
    "an element of a shared tile": (
        "T.assume(mine[i] < 1024)\n"
        "       # ^^^^^^^ warning[TL229] an element of `mine`, which this kernel writes\n"
        "out[i] = table[mine[i]] + one",
        KEPT,
    ),
    "a variable": (
        "T.assume(one < 1024)\n"
        "^^^^^^^^^^^^^^^^^^^^ warning[TL229] it is about `one`, which this kernel writes\n"
        "out[i] = table[one]",
        KEPT,
    ),
    "one part is of use, one is not": (
        "T.assume(0 <= rows[i] and rows[i] < 1024 and mine[i] < 4)\n"
        "                                           # ^^^^^^^ warning[TL229] `mine`, which this\n"
        "out[i] = table[rows[i]] + one",
        DROPPED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_promise(name: str) -> None:
    body, kept = CASES[name]
    inside = "\n".join("            " + line for line in body.splitlines())
    text = kernel_text(HEAD + inside.replace("            ^", "          # ^", 1) + "\n")
    (parsed,) = parse_static(text, "kernel.py")
    found = [d for d in parsed.diagnostics if d.code != "TL186"]
    assert [(d.span.line, d.span.column, d.code) for d in found if d.span] == [
        (e.line, e.column, e.code) for e in expected_of(text)
    ], found
    for one, said in zip(found, expected_of(text), strict=True):
        assert said.text in one.message
    assert parsed.function is not None
    lowered = lower_function(parsed.function, parse_target("cuda:sm_80"), CompileOptions())
    guards = [c for c in collect(lowered.func.body, tirx.Call) if is_lazy_select(c)]
    assert bool(guards) == kept, [str(g) for g in guards]
