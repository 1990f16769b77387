"""IR printed after any pass reads back as the same function, and prints as the same text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.random_kernels import random_gemm, random_tiles
from tests.inspect import kernels
from tests.ir.test_read_back import CASES, function_of
from tilelang.compiler import effective_options, lower_function
from tilelang.ir.read import read_function
from tilelang.ir.same import same_function
from tilelang.ir.text import print_function
from tilelang.ir.verify import verify
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "metal:apple9", "cpu")
SAMPLE = 4


class Kept:
    """An observer that keeps the function after each pass that changed it."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Any]] = []

    def before(self, name: str, func: Any, context: Any) -> None:
        if not self.steps:
            self.steps.append(("emit", func))

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None:
        if not func.same_as(self.steps[-1][1]):
            self.steps.append((name, func))


def after_each_pass(function: Function, target: str) -> Iterator[tuple[str, Any]]:
    kept = Kept()
    try:
        options = effective_options(function, CompileOptions())
        lower_function(function, parse_target(target), options, [kept])
    except CompileError:
        pass  # not for this target: what there was until then counts
    yield from kept.steps


def round_trips(function: Function, target: str) -> int:
    count = 0
    for name, func in after_each_pass(function, target):
        text = print_function(func).saved(function.name, name)
        read = read_function(text, "kernel.ir.py")
        assert read.after == name
        assert same_function(read.func, func), f"{function.name} for {target}, after {name}"
        assert print_function(read.func).saved(function.name, name) == text
        assert verify(read.func) == verify(func)
        count += 1
    return count


@pytest.mark.needs_torch
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_of_the_registry(target: str, full: bool) -> None:
    chosen = CASES if full else random.Random(TARGETS.index(target)).sample(CASES, SAMPLE)
    assert sum(round_trips(function_of(case), target) for case in chosen) >= 2 * len(chosen)


@pytest.mark.parametrize("make", [random_gemm, random_tiles])
def test_random_kernels(make: Any, full: bool) -> None:
    for number in range(20 if full else 1):
        assert round_trips(function_of(make(number)), "cuda:sm_80") > 5


def saved(target: str = "cuda:sm_80", name: str = "pipeline_loops") -> str:
    steps = dict(after_each_pass(kernels.matmul.function, target))
    return print_function(steps[name]).saved("matmul", name)


def test_functions_that_read_differently_are_not_the_same() -> None:
    steps = [func for _, func in after_each_pass(kernels.matmul.function, "cuda:sm_80")]
    texts = [print_function(func).text for func in steps]
    differing = [(n, m) for n in range(len(steps)) for m in range(n) if texts[n] != texts[m]]
    assert len(differing) > 40
    assert not any(same_function(steps[n], steps[m]) for n, m in differing)


def test_a_layout_that_was_edited_is_another_function() -> None:
    text = saved()
    line = next(row for row in text.splitlines() if "layout=T.Layout" in row)
    edited = text.replace(line, line.replace(" ^ ", " + 0 * ", 1))
    assert edited != text
    assert not same_function(read_function(edited, "k").func, read_function(text, "k").func)


def test_places_survive_without_those_of_new_lines() -> None:
    text = saved()
    commit = next(row for row in text.splitlines() if "T.cp_async_commit()" in row)
    new = commit.split("#@")[0].rstrip()
    edited = text.replace(commit, f"{commit}\n{new}", 1)
    lines = print_function(read_function(edited, "k").func).lines
    found = [x.span for x in lines if "T.cp_async_commit()" in x.text]
    assert found[0] == found[1] and found[0] is not None
    assert found[0].file.endswith("kernels.py")


def test_places_in_the_file_itself(tmp_path: Path) -> None:
    file = str(tmp_path / "edited.py")
    text = saved()
    read = read_function(text, file, here=True)
    rows = text.splitlines()
    for line in print_function(read.func).lines[1:]:  # the first is a decorator
        assert line.span is not None and line.span.file == file
        assert line.text.split("(")[0].strip() in rows[line.span.line - 1]


WRONG = (
    ("T.cp_async_commit()", "T.cp_async_comit()", "TL111", "T.cp_async_comit"),
    ("T.cp_async_commit()", "T.cp_async_commit(groups=1)", "TL112", "1"),
    ("T.cp_async_commit()", "T.cp_async_commit(1)", "TL114", "T.cp_async_commit(1)"),
    ("T.cp_async_commit()", "A[0] = 1.0", "TL203", "A[0]"),
    ("T.cp_async_commit()", "A[0, 0] = nobody", "TL110", "nobody"),
    ("T.cp_async_commit()", "A[0, 0] = bx", "TL236", "bx"),
    ("T.cp_async_commit()", "bx = 1", "TL135", "bx"),
    ("T.cp_async_commit()", "x = bx + 1.0 + T.int64(2)", "TL236", "bx + 1.0"),
    ("T.cp_async_commit()", "x = T.alloc_buffer((1,), 'float32', scope='attic')", "TL208",
     "'attic'"),
    ("T.cp_async_commit()", "x = T.alloc_local((1,), 'float33')", "TL230", "'float33'"),
    ("T.cp_async_commit()", "import os", "TL130", "import os"),
    ("T.cp_async_commit()", "__import__('os').system('false')", "TL131",
     "__import__('os').system('false')"),
)  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "at"), WRONG)
def test_what_is_wrong_is_told_at_its_place(old: str, new: str, code: str, at: str) -> None:
    text = saved()
    number = next(n for n, row in enumerate(text.splitlines(), 1) if old in row)
    with pytest.raises(CompileError) as raised:
        read_function(text.replace(old, new, 1), "edited.py")
    (found,) = raised.value.diagnostics
    row = text.replace(old, new, 1).splitlines()[number - 1]
    span = found.span
    assert span is not None
    assert (found.code, span.file, span.line) == (code, "edited.py", number)
    assert row[span.column - 1 : span.end_column - 1] == at


@pytest.mark.parametrize(
    ("text", "code"),
    [("def f(:\n", "TL101"), ("", "TL104"), ("x = 'a\n", "TL101"), ("def f():\n  pass  #@ ?x\n",
     "TL101"), ("def f():\n    pass\n\n\ndef g():\n    pass\n", "TL105")],
)  # fmt: skip
def test_what_is_no_ir(text: str, code: str) -> None:
    with pytest.raises(CompileError) as raised:
        read_function(text, "edited.py")
    assert [d.code for d in raised.value.diagnostics] == [code]
