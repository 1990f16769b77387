"""Where hints go while the text is edited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lsp.asking import without_cursor
from tilelang_diagnostics import Diagnostic, Edit, Label, Severity, Span, apply_edits
from tilelang_lsp.edits import change_between, move_diagnostics, move_hints
from tilelang_lsp.model import Hint


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb$0 = 1\n", "a\nnew\nb$0 = 1\n"),
        ("a\nb$0 = 1\n", "b$0 = 1\n"),
        ("b$0 = 1\n", "b$0 = 12\n"),
        ("b$0 = 1\n", "bc$0 = 1\n"),
        ("b$0 = 1\n", "ab$0 = 1\n"),
        ("b$0 = 1\n", "b$0  = 1\n"),
        ("b$0 = 1\n", "    b$0 = 1\n"),
        ("a\nb$0 = 1\nc\n", "a\nb$0 = 1\nc\nd"),
        ("a\nb$0 = f(1)\n", "a\nb$0 = f(\n  1)\n"),
        ("a\nb = f(\n 1); c$0\n", "a\nb = f(1); c$0\n"),
        ("é😀$0 = 1\n", "é😀x$0 = 1\n"),
    ],
)
def test_a_position_moves_with_its_text(before: str, after: str) -> None:
    old, line, column = without_cursor(before)
    new, to_line, to_column = without_cursor(after)
    change = change_between(old, new)
    assert change is not None
    assert change.move(line, column) == (to_line, to_column)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb$0 = 1\nc", "a\nc"), ("abc$0d = 1", "aXd = 1"), ("x = foo$0bar", "x = y")],
)
def test_a_position_in_replaced_text_is_gone(before: str, after: str) -> None:
    old, line, column = without_cursor(before)
    change = change_between(old, after)
    assert change is not None
    assert change.move(line, column) is None


def test_equal_texts_have_no_change() -> None:
    assert change_between("a\n", "a\n") is None


LINES = st.lists(st.text("ab =(é😀", max_size=6), max_size=5).map("\n".join)


@given(LINES, LINES, LINES, LINES)
def test_the_change_turns_the_old_text_into_the_new(
    head: str, old: str, new: str, tail: str
) -> None:
    before, after = head + old + tail, head + new + tail
    change = change_between(before, after)
    if change is None:
        assert before == after
        return
    edit = Edit(Span("f", *change.start, *change.old_end), change.inserted)
    # A change of whole last lines runs to a line that does not exist; both texts end there.
    assert apply_edits(before + "\n", [edit]).rstrip("\n") == after.rstrip("\n")


def test_hints_keep_their_label() -> None:
    change = change_between("a\nb = 1", "a\n\nb = 1")
    assert change is not None
    moved = move_hints([Hint(1, 2, ": x"), Hint(2, 2, ": y")], change)
    assert moved == (Hint(1, 2, ": x"), Hint(3, 2, ": y"))


def test_findings_move_and_those_whose_text_went_are_dropped() -> None:
    change = change_between("a\nbad\nb = worse\n", "a\nb = worse\n")
    assert change is not None
    gone = Diagnostic("TL110", Severity.ERROR, "m", Span("f", 2, 1, 2, 4))
    kept = Diagnostic("TL110", Severity.ERROR, "m", Span("f", 3, 5, 3, 10), labels=(
        Label(Span("f", 2, 1, 2, 4), "gone"), Label(Span("f", 3, 1, 3, 2), "here"),
    ))  # fmt: skip
    (moved,) = move_diagnostics([gone, kept], change)
    assert moved.span == Span("f", 2, 5, 2, 10)
    assert moved.labels == (Label(Span("f", 2, 1, 2, 2), "here"),)
