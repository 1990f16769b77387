"""What is understood of a file while a line of it is half-written."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tests.lsp.asking import analysis_of, in_launch, with_hints
from tests.support.markers import kernel_text
from tilelang_lsp.recovery import recover


def repaired(text: str) -> list[str]:
    """The lines that were replaced, as they read now."""
    found = recover(textwrap.dedent(text).strip("\n"))
    assert found is not None
    return [found.text.split("\n")[line - 1].strip() for line in found.broken]


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("T.copy(A[", "pass"),
        ("x = A[", "x = globals()"),
        ("x, y = A[", "x, y = globals()"),
        ("x: int = A[", "x = globals()"),
        ("x += (", "pass"),
        ("return (", "pass"),
        ("x = 'open", "x = globals()"),
        ("T.copy(A, B))", "pass"),
        ("1 +", "pass"),
    ],
)
def test_statements_lose_their_meaning_not_their_names(line: str, becomes: str) -> None:
    assert repaired(f"def f():\n    {line}\n    y = 1") == [becomes]


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("for k in T.Pipelined(", "for k in globals():"),
        ("for i, j in T.Parallel(8, 8)", "for i, j in globals():"),
        ("with T.Kernel(4, threads= as bx:", "with globals() as bx:"),
        ("with T.Kernel(4 as (bx, by):", "with globals() as (bx, by):"),
        ("if x ==:", "if globals():"),
        ("while (:", "if globals():"),
        ("def inner(a, :", "def inner(*_, **__):"),
        ("class C(:", "class C:"),
    ],
)
def test_headers_keep_their_block(line: str, becomes: str) -> None:
    assert repaired(f"def f():\n    {line}\n        y = 1\n    z = 2") == [becomes]


def test_a_header_without_its_body_yet() -> None:
    assert repaired("def f():\n    for k in range(8):  # now\n    z = 2") == [
        "for k in range(8): pass"
    ]
    assert repaired("def f():\n    for k in range(\n") == ["for k in globals(): pass"]


def test_the_rest_of_a_call_over_several_lines_goes_too() -> None:
    found = recover("def f():\n    T.copy(\n        A,\n        B\n    y = 1\n")
    assert found is not None
    assert "y = 1" in found.text
    assert found.definitions_broken() == ((1, 5),)


def test_lines_keep_their_numbers() -> None:
    text = kernel_text(in_launch("T.copy(A[\nT.clear(C)"))
    found = recover(text)
    assert found is not None
    assert found.text.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", ["import tilelang.language as\n", "from tilelang import (\nx = 1\n"]
)
def test_a_file_without_its_imports_is_not_guessed_at(text: str) -> None:
    assert recover(text) is None


@pytest.mark.parametrize("text", ["\0", "(" * 5000, ")\n" * 200, "'''", "\t x\n y", "\\"])
def test_hopeless_texts_do_not_raise(text: str) -> None:
    found = recover(text)
    assert found is None or isinstance(found.tree, ast.Module)


def test_hints_around_a_half_written_line_stay() -> None:
    text = in_launch("""
        s = T.alloc_shared((32, 64), "float16")
        for k in T.serial(
            T.copy(A[k * 32, 0], s)
        t = T.alloc_shared((8,), "int8")
    """)
    assert with_hints(text) == (
        's⟨: (32, 64) float16 shared⟩ = T.alloc_shared((32, 64), "float16")\n'
        't⟨: (8,) int8 shared⟩ = T.alloc_shared((8,), "int8")'
    )


def test_only_the_syntax_error_is_said_of_the_broken_definition() -> None:
    broken = in_launch("T.copy(A[\nunknown_name").replace("main", "broken")
    other = in_launch("T.copy(missing, C)").replace("main", "other")
    found = analysis_of(kernel_text(broken + "\n" + other)).diagnostics
    assert [d.code for d in found] == ["TL101", "TL110"]
    assert "missing" in found[1].message


def test_an_unreadable_text_keeps_nothing_but_its_error() -> None:
    found = analysis_of("import tilelang.language as\n")
    assert not found.complete
    assert [d.code for d in found.diagnostics] == ["TL101"]


def test_a_file_without_kernels_is_not_read() -> None:
    assert analysis_of("x = (").diagnostics == ()


def test_every_prefix_of_a_kernel_is_analysed() -> None:
    text = kernel_text(in_launch("""
        s = T.alloc_shared((32, 64), "float16")
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[k * 32, 0], s)
        for i, j in T.Parallel(32, 64):
            C[i, j] = T.cast(s[i, j], "float32")
    """))  # fmt: skip
    for end in range(len(text)):
        codes = {d.code for d in analysis_of(text[:end]).diagnostics}
        assert "TL900" not in codes, text[:end]
