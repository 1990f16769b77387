"""A function printed after every pass reads as if it were printed alone; most of it is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tilelang.language as T
from tests.ir.test_read_back import CASES, function_of
from tests.ir.test_text_round_trip import TARGETS, after_each_pass
from tests.support.lowering import emitted
from tilelang.ir import tirx
from tilelang.ir.text import IRLine, print_function
from tilelang.ir.text_memory import TextMemory
from tilelang.ir.visit import collect

SAMPLE = 2


@pytest.mark.needs_torch
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_known_reads_the_same(target: str, full: bool) -> None:
    chosen = CASES if full else random.Random(target).sample(CASES, SAMPLE)
    lines = printed = 0
    for case in chosen:
        memory: TextMemory[IRLine] = TextMemory()
        known: dict[int, IRLine] = {}
        for name, func in after_each_pass(function_of(case), target):
            text = print_function(func, memory)
            alone = print_function(func)
            assert text.saved("k", name) == alone.saved("k", name), (case, name)
            lines += len(text.lines)
            printed += sum(id(line) not in known for line in text.lines)
            known |= {id(line): line for line in text.lines}
    assert lines > 100 and printed < 0.6 * lines, f"{printed} of {lines} lines were printed"


def two_loops() -> tuple[Any, Any]:
    """A function, and two loops over variables that are both called `i`."""

    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.serial(4):
                A[i] = 1.0

    func = emitted(kernel)
    (loop,) = collect(func.body, tirx.For)
    other = tirx.Var("i", "int32")
    store = tirx.BufferStore(loop.body.buffer, loop.body.value, [other])
    return func, tirx.SeqStmt([loop, tirx.For(other, 0, 4, loop.kind, store)])


def test_a_name_that_became_free_is_given_again() -> None:
    func, both = two_loops()
    memory: TextMemory[IRLine] = TextMemory()
    first = print_function(func.with_body(both), memory)
    assert [line.text.strip() for line in first.lines if "for" in line.text] == [
        "for i in T.serial(4):", "for i_1 in T.serial(4):",
    ]  # fmt: skip
    second = print_function(func.with_body(both.seq[1]), memory)
    assert second.text == print_function(func.with_body(both.seq[1])).text
    assert "i_1" not in second.text and "for i in T.serial(4):" in second.text
    again = print_function(func.with_body(both), memory)
    assert again.text == first.text


def test_a_statement_that_moved_inward_is_indented() -> None:
    func, both = two_loops()
    memory: TextMemory[IRLine] = TextMemory()
    print_function(func.with_body(both), memory)
    deeper = func.with_body(tirx.IfThenElse(tirx.LT(func.params[0].shape[0], 9), both, None))
    assert print_function(deeper, memory).saved("k") == print_function(deeper).saved("k")
