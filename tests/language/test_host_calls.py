"""Python's own functions, given what only the device knows: text that nobody runs is told the same
as a kernel that is traced.

`PLACES` are where the statements stand, `STATEMENTS` what they do with each of `VALUES`.
"""

from __future__ import annotations

import linecache
from typing import Any

import pytest

from tilelang.language.frontend import parse_static
from tilelang_diagnostics.model import Diagnostic

KERNEL = """
import functools, itertools, math, operator
import tilelang.language as T

def helper(kv, A, fr, v, N, bx):
{helper}
    return 1

@T.prim_func
def main(A: T.Tensor((64,), "float32"), N: T.int32, C: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64) as bx:
        kv = T.alloc_shared((64,), "float32")
        fr = T.alloc_fragment((64,), "float32")
        v = T.alloc_var("int32")
        v = 3
        T.copy(A, kv)
        T.copy(kv, fr)
{kernel}
        T.copy(fr, C)
"""
VALUES = ("kv", "A[0:4]", "v", "(bx + 1)", "A.shape[0]")
CALLS = (
    "len({})", "sum({})", "int({})", "float({})", "bool({})", "sorted({})", "list({})", "tuple({})",
    "set({})", "dict({})", "frozenset({})", "max({})", "min({})", "abs({})", "round({})", "any({})",
    "reversed({})", "all({})", "range({})", "divmod({}, 2)", "pow({}, 2)", "chr({})", "ord({})",
    "hex({})", "bin({})", "int({}, 10)", "max({}, 3)", "max([{}, 1])", "sum([{}, 1])",
    "sorted([{}, 1])", "sorted([1, 2], key=lambda q: {})", "any([{}, 1])", "max(*{})",
    "','.join({})", "[1, 2].index({})", "[1, 2][{}]", "getattr({}, 'nope')", "math.sqrt({})",
    "math.floor({})", "math.prod({})", "operator.index({})", "operator.add({}, 1)",
    "functools.reduce(operator.add, {})", "list(itertools.chain({}, [1]))", "isinstance({}, int)",
    "str({})", "type({})", "callable({})", "hasattr({}, 'nope')", "1 if {} else 2", "[q for q in {}]",
)  # fmt: skip
STATEMENTS = (
    *(f"z = {call}" for call in CALLS),
    *(f"for q in {loop}: pass" for loop in (
        "{}", "enumerate({})", "zip({}, [1, 2])", "zip([1, 2], {})", "map(int, {})",
        "filter(None, {})", "reversed({})")),
    "a, b = {}", "z = [*{}]", "assert {}", "z = {} and 1",
)  # fmt: skip
# Each way is told of at the line of the helper, in words of the language; Python's are others.
OTHER_WORDS = frozenset({"TL111", "TL116", "TL141", "TL151", "TL154", "TL228"})


def traced(text: str, name: str) -> tuple[Diagnostic, ...]:
    """What a run of the file says."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        exec(compile(text, name, "exec"), {"__name__": "kernels"})
    except Exception as error:
        return tuple(error.diagnostics)  # type: ignore[attr-defined]
    return ()


def both(place: str, statement: str) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The errors that are found in the text, and by a run."""
    inside = {"kernel": "        helper(kv, A, fr, v, N, bx)", "helper": "    pass"}
    inside[place] = ("    " if place == "helper" else "        ") + statement
    text, name = KERNEL.format(**inside), f"<{place} {statement}>"
    found = [d for p in parse_static(text, name) for d in p.diagnostics]
    return [d for d in found if d.is_error], [d for d in traced(text, name) if d.is_error]


@pytest.mark.parametrize("call", ["iter({})", "next({})"])
def test_what_is_not_called_is_refused(call: str) -> None:
    for value in ("kv", "N"):
        read, run = both("kernel", f"z = {call.format(value)}")
        assert read and _said(read) == _said(run)


@pytest.mark.parametrize("value", VALUES)
def test_in_a_kernel(value: str) -> None:
    for statement in STATEMENTS:
        read, run = both("kernel", statement.format(value))
        assert _said(read) == _said(run), statement.format(value)


@pytest.mark.parametrize("value", ["kv", "N"])
def test_in_a_function_that_the_kernel_calls(value: str) -> None:
    for statement in STATEMENTS:
        read, run = both("helper", statement.format(value))
        codes = {d.code for d in read}
        assert codes == {d.code for d in run} or codes <= OTHER_WORDS, (
            statement.format(value), _said(read), _said(run),
        )  # fmt: skip
        assert bool(read) == bool(run), (statement.format(value), _said(run))


def _said(found: list[Diagnostic]) -> list[Any]:
    return [(d.code, d.message) for d in found]


# What a run might have otherwise, or may never come to.
SILENT = (
    "def make(rows):\n    {}\n    n = len(rows)",
    "def make(rows=None):\n    {}\n    n = len(rows)",
    "def make(many: bool, rows=7):\n    {}\n    n = len(rows) if many else 1",
    "try:\n    n = len(7)\nexcept TypeError:\n    n = 1\n\ndef make():\n    {}\n    n = 1",
)


@pytest.mark.parametrize("text", SILENT)
def test_nothing_is_said_where_a_run_may_differ(text: str) -> None:
    head, _, body = text.partition("    {}\n")
    kernel = f"""
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=64):
        {body}
            for i in T.Parallel(64):
                C[i] = A[i] * n

    return main
"""
    full = f"import tilelang.language as T\n\n{head}{kernel}"
    found = [d for p in parse_static(full, "kernel.py") for d in p.diagnostics]
    assert found == [], full
