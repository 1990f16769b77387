"""Folding, selections, links and colours: what is read off the text and its symbols."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from lsprotocol.types import SemanticTokens, SemanticTokensEdit

from tests.lsp.asking import PATH, analysis_of, ask, in_launch, request_for
from tests.support.markers import kernel_text
from tilelang_lsp.features import document_links, folding, selection_ranges, semantic_tokens
from tilelang_lsp.features.semantic_tokens import MODIFIERS, TYPES
from tilelang_lsp.token_changes import changes

FOLDED = """import tilelang
import tilelang.language as T

# one
# two
# three
@T.prim_func
def main(
    A: T.Tensor((64,), "float32"),
):
    with T.Kernel(1) as bx:
        # region loops
        for i in T.serial(4):
            if i > 2:
                A[i] = 0
            else:
                A[i] = 1
        # endregion
"""


def folds_of(text: str) -> list[tuple[int, int, str | None]]:
    found = folding.FEATURE.answer(request_for(analysis_of(text)))
    return [(f.first, f.last, f.kind) for f in found]


@pytest.mark.parametrize(
    "fold",
    [
        (1, 2, "imports"), (4, 6, "comment"), (8, 17, None), (11, 17, None), (13, 17, None),
        (14, 17, None), (12, 18, "region"), (16, 17, None),
    ],
)  # fmt: skip
def test_what_folds(fold: tuple[int, int, str | None]) -> None:
    assert fold in folds_of(FOLDED)


def test_brackets_over_several_lines_fold() -> None:
    assert (1, 4, None) in folds_of("x = dict(\n    a=1,\n    b=2,\n)\n")


def test_imports_fold_where_they_stand_together() -> None:
    text = "import a\nimport b\n\nfrom c import (\n    d,\n)\nx = 1\nimport e\nimport f\nx = 2\n"
    assert [f for f in folds_of(text) if f[2] == "imports"] == [
        (1, 6, "imports"), (8, 9, "imports"),
    ]  # fmt: skip


def test_what_is_tried_and_what_is_chosen_folds() -> None:
    text = (
        "try:\n    a\n    b\nexcept E:\n    c\n    d\nmatch x:\n    case 1:\n        a\n        b\n"
    )
    found = folds_of(text)
    assert {(4, 6, None), (7, 10, None), (8, 10, None)} <= set(found)


def test_a_half_written_file_folds() -> None:
    found = folds_of(FOLDED.replace("A[i] = 1", "A[i"))
    assert (11, 17, None) in found and (4, 6, "comment") in found


def test_nothing_folds_twice() -> None:
    found = folds_of(FOLDED)
    assert len(found) == len(set(found))


def chain(text: str) -> list[str]:
    """The texts of the selections from the cursor outwards, up to the statement."""
    source = kernel_text(text)
    before, _, after = source.partition("$0")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    whole = before + after
    request = request_for(analysis_of(whole))
    (found,) = selection_ranges.FEATURE.answer(replace(request, positions=((line, column),)))
    lines = whole.split("\n")
    return [
        lines[s.line - 1][s.column - 1 : s.end_column - 1] for s in found.spans
        if s.line == s.end_line
    ]  # fmt: skip


def test_selections_grow_as_the_syntax_nests() -> None:
    assert chain(in_launch("T.copy(A[bx * $032, 0], C)"))[:5] == [
        "32", "bx * 32", "bx * 32, 0", "A[bx * 32, 0]", "T.copy(A[bx * 32, 0], C)"
    ]  # fmt: skip


def test_selections_start_with_the_name() -> None:
    assert chain(in_launch("T.co$0py(A, C)"))[:3] == ["copy", "T.copy", "T.copy(A, C)"]


def test_selections_count_code_points() -> None:
    assert chain(in_launch("x = '😀é'; T.copy(A, $0C)"))[0] == "C"


@pytest.mark.parametrize("text", ["", "\n", "x = (", "def f(:\n  $"])
def test_selections_of_any_text(text: str) -> None:
    request = request_for(analysis_of(text))
    (found,) = selection_ranges.FEATURE.answer(replace(request, positions=((1, 1),)))
    assert found.spans


@pytest.mark.parametrize(
    ("line", "text", "target"),
    [
        ("x = 1  # see TL204", "TL204", "TL204.md"),
        ("x = 1  # tilelang: ignore[bank-conflicts] fine", "bank-conflicts", "TL306.md"),
        ("# https://example.org/a.html.", "https://example.org/a.html", "https://example.org/a.html"),
    ],
)  # fmt: skip
def test_links(line: str, text: str, target: str) -> None:
    found = document_links.FEATURE.answer(request_for(analysis_of(f"# tilelang\n{line}\n")))
    (link,) = [k for k in found if k.span.line == 2][:1]
    assert line[link.span.column - 1 : link.span.end_column - 1] == text
    where = link.file or link.url
    assert where.endswith(target) or (target == "TL306.md" and "TL3" in where)


@pytest.mark.parametrize("line", ["x = 'TL204'", "TL204 = 1", "x = 1  # TL999", "# nothing"])
def test_no_links(line: str) -> None:
    assert document_links.FEATURE.answer(request_for(analysis_of(f"# tilelang\n{line}\n"))) == ()


def tokens(body: str, **options: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name -> kind and modifiers of the last token of each name."""
    source = kernel_text(body)
    request = request_for(analysis_of(source))
    lines = source.split("\n")
    return {
        lines[t.line - 1][t.column - 1 : t.column - 1 + t.length]: (t.kind, t.modifiers)
        for t in semantic_tokens.FEATURE.answer(request)
    }


BODY = """
    s = T.alloc_shared((32, 64), "float16")
    f = T.alloc_fragment((32, 64), T.float32)
    x = bx * 2
    for k in T.serial(4):
        T.copy(A[k, x], s)
        T.copy(s, f)
    T.copy(f, C)
"""


@pytest.mark.parametrize(
    ("name", "kind", "modifier"),
    [
        ("s", "variable", "shared"), ("f", "variable", "fragment"), ("A", "parameter", "global"),
        ("bx", "variable", "readonly"), ("k", "variable", "readonly"),
        ("copy", "function", "defaultLibrary"), ("float32", "type", "defaultLibrary"),
        ("alloc_shared", "function", "defaultLibrary"), ("jit", "function", "defaultLibrary"),
        ("T", "namespace", ""), ("tilelang", "namespace", ""),
    ],
)  # fmt: skip
def test_colours(name: str, kind: str, modifier: str) -> None:
    found = tokens("import tilelang\n" + in_launch(BODY).replace("@T.prim_func", "@tilelang.jit"))
    assert found[name][0] == kind
    assert modifier in found[name][1] or not modifier


def test_colours_of_some_lines_are_those_of_all() -> None:
    request = request_for(analysis_of(kernel_text(in_launch(BODY))))
    whole = semantic_tokens.FEATURE.answer(request)
    some = semantic_tokens.OF_LINES.answer(replace(request, line=8, end_line=10))
    assert some == tuple(t for t in whole if 8 <= t.line <= 10)
    assert {t.line for t in some} == {8, 9, 10}


def as_changed(before: list[int], edits: list[SemanticTokensEdit]) -> list[int]:
    """Numbers after edits, none of which overlap."""
    after = list(before)
    for edit in sorted(edits, key=lambda e: -e.start):
        after[edit.start : edit.start + edit.delete_count] = edit.data or []
    return after


@pytest.mark.parametrize(
    ("before", "now", "start"),
    [
        ("", "", None), ("ab", "ab", None), ("", "a", 0), ("a", "", 0), ("abc", "axc", 5),
        ("abc", "abxc", 10), ("abbc", "abc", 10), ("abc", "abcd", 15), ("abc", "xyz", 0),
        ("aaa", "aa", 10), ("ab", "ba", 0),
    ],
)  # fmt: skip
def test_what_changed_of_colours(before: str, now: str, start: int | None) -> None:
    def numbers(names: str) -> list[int]:
        return [n for name in names for n in (0, ord(name), 1, 2, 0)]

    found = changes(numbers(before), SemanticTokens(numbers(now), "name"))
    assert found.result_id == "name"
    assert [e.start for e in found.edits] == ([] if start is None else [start])
    assert as_changed(numbers(before), list(found.edits)) == numbers(now)


def test_macros_have_their_colour() -> None:
    found = tokens("@T.macro\ndef double(x):\n    x[0] = 2\n\n" + in_launch("double(A)"))
    assert found["double"][0] == "macro"


def test_colours_are_in_order_and_apart() -> None:
    source = kernel_text(in_launch(BODY))
    found = semantic_tokens.FEATURE.answer(request_for(analysis_of(source)))
    places = [(t.line, t.column, t.column + t.length) for t in found]
    assert places == sorted(places)
    assert all(a[0] < b[0] or a[2] <= b[1] for a, b in pairwise(places))
    assert {t.kind for t in found} <= set(TYPES)
    assert {m for t in found for m in t.modifiers} <= set(MODIFIERS)


def test_names_in_comments_have_no_colour() -> None:
    assert "gemm" not in tokens(in_launch("T.clear(C)  # not T.gemm"))


def test_the_path_of_everything_is_the_file() -> None:
    found = ask(document_links.FEATURE, in_launch("T.clear(C)  # TL204$0"))
    assert {link.span.file for link in found} == {PATH}
