"""Rewrites that are offered where they fit, and the patterns that completion puts in."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.lsp.asking import (
    PATH,
    analysis_of,
    ask,
    in_launch,
    looked_into,
    request_for,
    without_cursor,
)
from tests.support.markers import kernel_text
from tilelang_diagnostics import apply_edits
from tilelang_lsp.features import code_actions, completion
from tilelang_lsp.features.code_actions import fixes_of
from tilelang_lsp.features.snippets import SNIPPETS
from tilelang_lsp.insights import FileInsights, Known
from tilelang_lsp.model import Fact, Insight
from tilelang_lsp.moves import Placed


def rewritten(text: str, title: str, **more: Any) -> str | None:
    """The text after the action of this title at `$0`; None where it is not offered."""
    found = [a for a in ask(code_actions.FEATURE, text, **more) if a.title == title]
    source, _, _ = without_cursor(kernel_text(text))
    return apply_edits(source, found[0].edits) if found else None


TITLE_ASYNC = "make this copy asynchronous, and wait for it here"
TITLE_LOOP = "copy ahead: make this loop a pipeline of 2 stages"
TITLE_PAD = "pad the rows to avoid bank conflicts"


def test_a_copy_becomes_asynchronous() -> None:
    text = in_launch("s = T.alloc_shared((32, 64), 'float16')\nT.co$0py(A[0, 0], s)\nT.clear(s)")
    found = rewritten(text, TITLE_ASYNC)
    assert found is not None
    assert "        T.async_copy(A[0, 0], s)\n        T.ptx_wait_group(0)\n" in found
    errors = [d for d in analysis_of(found).diagnostics if d.is_error]
    assert errors == []


@pytest.mark.parametrize(
    "call", ["T.copy(A, C)", "T.copy(s, A)", "T.clear(s)", "x = T.copy", "T.copy(A[0, 0], f)"]
)
def test_no_other_copy_does(call: str) -> None:
    head = "s = T.alloc_shared((32, 64), 'float16')\nf = T.alloc_fragment((32, 64), 'float16')\n"
    assert rewritten(in_launch(f"{head}{call}$0"), TITLE_ASYNC) is None


def test_a_serial_loop_becomes_a_pipeline() -> None:
    text = in_launch(
        "s = T.alloc_shared((32, 64), 'float16')\n"
        "for k in $0T.serial(4):\n    T.copy(A[k * 32, 0], s)\n    T.copy(s, C[0, 0])"
    )
    found = rewritten(text, TITLE_LOOP)
    assert found is not None
    assert "for k in T.Pipelined(4, num_stages=2):" in found
    assert [d for d in analysis_of(found).diagnostics if d.is_error] == []


@pytest.mark.parametrize("header", ["for k in T.Parallel(4):", "for k in T.serial(4):"])
def test_loops_without_copies_do_not(header: str) -> None:
    assert rewritten(in_launch(f"$0{header}\n    T.clear(C)"), TITLE_LOOP) is None


def test_a_fragment_is_cleared() -> None:
    found = rewritten(in_launch("acc = $0T.alloc_fragment((8, 8), 'float32')"), "add T.clear(acc)")
    assert found is not None and found.rstrip().endswith("        T.clear(acc)")


def test_not_twice() -> None:
    text = in_launch("acc = $0T.alloc_fragment((8, 8), 'float32')\nT.clear(acc)")
    assert rewritten(text, "add T.clear(acc)") is None


CONFLICTS = """
    s = T.alloc_$0shared({shape}, "{dtype}")
    f = T.alloc_fragment((64, 64), "{dtype}")
    T.fill(f, 1)
    {layout}
    for i, j in T.Parallel(64, 64):
        s[j, i] = f[i, j]
    for i, j in T.Parallel(64, 64):
        C[i, j] = s[i, j]
"""
BY_ROWS = "T.annotate_layout({s: T.Layout((64, 64), lambda i, j: i * 64 + j)})"


def conflicts(source: str) -> tuple[FileInsights, list[int]]:
    """What is known of a kernel for a GPU, and how many-way the conflicts of `s` are."""
    insights = looked_into(source, "cuda:sm_80")
    tile = next(s.span for s in analysis_of(source).symbols if s.name == "s")
    labels = [f.label for f in insights.facts if f.span == tile]
    return insights, [int(m[1]) for x in labels if (m := re.search(r"(\d+)-way", x))]


@pytest.mark.parametrize(
    ("layout", "dtype", "after"),
    [
        (BY_ROWS, "float32", "lambda i, j: i * 65 + j"),
        (BY_ROWS, "float16", "lambda i, j: i * 66 + j"),
    ],
)
def test_a_tile_with_conflicts_is_padded(layout: str, dtype: str, after: str) -> None:
    text = in_launch(CONFLICTS.format(shape="(64, 64)", dtype=dtype, layout=layout), grid="1")
    source = kernel_text(text.replace("$0", ""))
    insights, before = conflicts(source)
    found = rewritten(text, TITLE_PAD, insights=insights)
    assert found is not None and after in found
    assert [d for d in analysis_of(found).diagnostics if d.is_error] == []
    assert max(conflicts(found)[1], default=1) < max(before) / 3
    # The finding has it as a fix, where the banks collide.
    collisions = [d for d in insights.diagnostics if d.code == "TL306"]
    request = replace(request_for(analysis_of(source)), insights=insights)
    (fix,) = {f for d in collisions for f in fixes_of(request, d)}
    assert apply_edits(source, fix.edits) == found


def test_a_tile_of_the_same_name_stays_as_it_is() -> None:
    text = CONFLICTS.format(shape="(64, 64)", dtype="float32", layout=BY_ROWS)
    first = kernel_text(in_launch(text.replace("$0", ""), grid="1"))
    second = "\n\n" + first[first.index("@T.prim_func") :].replace("def main", "def second")
    insights = looked_into(first + second, "cuda:sm_80")
    request = replace(request_for(analysis_of(first + second)), insights=insights)
    found = [d for d in insights.diagnostics if d.code == "TL306" and d.span is not None]
    fixed = {apply_edits(first + second, f.edits) for d in found for f in fixes_of(request, d)}
    wider = [t.replace("i * 64 + j", "i * 65 + j") for t in (first, second)]
    assert fixed == {wider[0] + second, first + wider[1]}


@pytest.mark.parametrize(
    ("layout", "shape", "after"),
    [
        ("pass", "(64, 64)", "T.annotate_layout({s: T.Layout((64, 64), lambda i, j: i * 65 + j)})"),
        ("pass", "[64, 8 * 8]", "T.Layout((64, 8 * 8), lambda i, j: i * (8 * 8 + 1) + j)"),
        ("T.gemm(s, s, f)", "(64, 64)", "lambda i, j: i * 68 + j"),
        ("T.annotate_layout({s: other})", "(64, 64)", None),
        ("pass", "(64,)", None),
    ],
)
def test_the_layout_of_a_padded_tile(layout: str, shape: str, after: str | None) -> None:
    text = in_launch(CONFLICTS.format(shape=shape, dtype="float32", layout=layout), grid="1")
    analysis = analysis_of(kernel_text(text.replace("$0", "")))
    span = next(s.span for s in analysis.symbols if s.name == "s")
    insight = Insight("main", 1, "", False, (Fact(span, "layouts", " 32-way conflicts"),))
    known = FileInsights({("main", "main", 0): Known.of(Placed(insight, ()), "", (), PATH)})
    found = rewritten(text, TITLE_PAD, insights=known)
    assert found is None if after is None else after in (found or "")


@pytest.mark.parametrize(
    ("text", "title", "after"),
    [
        ("T.co$0py(\n    A[0, 0],  # from\n    s,\n)", TITLE_ASYNC,
         "T.async_copy(\n    A[0, 0],  # from\n    s,\n)\nT.ptx_wait_group(0)"),
        ("for k in T.Pipelined(4, num_stages=2):\n    T.copy(A[0, 0], s)$0", TITLE_ASYNC, None),
        ("T.copy(A[0, 0], s, coalesced_width=2)$0", TITLE_ASYNC, None),
        ("for k in $0range(\n    0,\n    4,\n):\n    if n > 1:\n        T.copy(A, s)", TITLE_LOOP,
         "for k in T.Pipelined(\n    0,\n    4, num_stages=2,\n):\n    if n > 1:\n"
         "        T.copy(A, s)"),
        ("for k in range(0, 4, 2):$0\n    T.copy(A[0, 0], s)", TITLE_LOOP, None),
        ("f = T.alloc_fragment(\n    (4, 4),\n    'float32',$0\n)  # sums", "add T.clear(f)",
         "f = T.alloc_fragment(\n    (4, 4),\n    'float32',\n)  # sums\nT.clear(f)"),
    ],
)  # fmt: skip
def test_statements_over_several_lines(text: str, title: str, after: str | None) -> None:
    head = "s = T.alloc_shared((32, 64), 'float16')\n"
    found = rewritten(in_launch(head + text), title)
    assert found == (None if after is None else kernel_text(in_launch(head + after)))


def test_selected_statements_become_a_macro() -> None:
    text = in_launch("s = T.alloc_shared((32, 64), 'float16')\n$0T.copy(A[bx, 0], s)\nT.clear(C)")
    _, line, _ = without_cursor(kernel_text(text))
    chosen = {"line": line, "column": 1, "end_line": line + 1, "end_column": 99}
    found = rewritten(text, "extract a macro", **chosen)
    assert found is not None
    body = "    T.copy(A[bx, 0], s)\n    T.clear(C)\n"
    assert f"@T.macro\ndef extracted(A, C, bx, s):\n{body}" in found
    assert "        extracted(A, C, bx, s)\n" in found
    assert [d for d in analysis_of(found).diagnostics if d.is_error] == []


def test_a_second_macro_has_a_name_of_its_own() -> None:
    text = in_launch("extracted = bx * 2\n$0C[extracted, 0] = 0")
    _, line, _ = without_cursor(kernel_text(text))
    chosen = {"line": line, "column": 1, "end_line": line, "end_column": 99}
    found = rewritten(text, "extract a macro", **chosen)
    assert found is not None and "def extracted_2(" in found and "        extracted_2(" in found


@pytest.mark.parametrize(
    "body",
    [
        "$0x = bx * 2\ny = x + 1\nC[x, y] = 0",  # x is used below
        "$0for i in T.serial(4):\n    break",
    ],
)
def test_what_cannot_be_a_macro(body: str) -> None:
    text = in_launch(body)
    _, line, _ = without_cursor(kernel_text(text))
    found = rewritten(text, "extract a macro", line=line, column=1, end_line=line, end_column=99)
    assert found is None


def test_nothing_is_extracted_without_a_selection() -> None:
    assert rewritten(in_launch("T.cl$0ear(C)"), "extract a macro") is None


def labels(text: str) -> list[str]:
    ordered = sorted(ask(completion.FEATURE, text), key=lambda c: (c.order, c.label))
    return [c.label for c in ordered]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("T.gemm(A, A, C, policy=$0)", "T.GemmWarpPolicy.FullCol"),
        ("s = T.alloc_shared((4,), dtype=$0)", "T.bfloat16"),
        ("s = T.alloc_shared((4,), $0)", "T.bfloat16"),
        ("for k in T.Pipelined(4, num_stages=$0)", '"auto"'),
    ],
)
def test_values_of_arguments_come_first(line: str, first: str) -> None:
    assert labels(in_launch(line))[0] == first


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("for k in T.$0", "Pipelined"), ("with T.$0", "Kernel"), ("T.$0", "copy"),
        ("s = T.$0", "alloc_shared"), ("s = T.alloc_shared((4,), T.$0)", "float16"),
    ],
)  # fmt: skip
def test_what_fits_the_place_comes_first(line: str, kind: str) -> None:
    found = ask(completion.FEATURE, in_launch(line))
    (entry,) = [c for c in found if c.label == kind]
    assert entry.order < 0


def test_decorators() -> None:
    found = ask(completion.FEATURE, "@T.$0\ndef f(): ...")
    assert next(c for c in found if c.label == "prim_func").order < 0


@pytest.mark.parametrize(("root", "member"), [("A", "shape"), ("T.GemmWarpPolicy", "FullRow")])
def test_members(root: str, member: str) -> None:
    text = in_launch(f"x = {root}.$0\nT.clear(C)")
    analysed = in_launch("T.clear(C)")
    found = ask(completion.FEATURE, text, analysed)
    assert member in [c.label for c in found]


@pytest.mark.parametrize("name", [s.name for s in SNIPPETS])
def test_patterns_are_offered_where_they_fit(name: str) -> None:
    where = next(s.where for s in SNIPPETS if s.name == name)
    inside = labels(in_launch("T.clear(C)\n$0"))
    outside = labels(in_launch("T.clear(C)") + "\n$0")
    assert (name in inside) == (where == "launch")
    assert (name in outside) == (where == "top")
