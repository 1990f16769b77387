"""Which lines a pass changed, as unified diffs have them."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from tilelang_diagnostics import Span
from tilelang_trace.diff import difference
from tilelang_trace.model import Line, Step


def step(text: str) -> Step:
    return Step("pass", tuple(Line(line) for line in text.split()))


def shown(before: str, after: str, context: int = 1) -> list[str]:
    changes = difference(step(before), step(after), context)
    return [
        text for hunk in changes.hunks
        for text in (hunk.header, *(f"{row.sign}{row.line.text}" for row in hunk.rows))
    ]  # fmt: skip


def test_a_changed_line_with_its_neighbours() -> None:
    assert shown("a b c d e", "a b X d e") == ["@@ -2,3 +2,3 @@", " b", "-c", "+X", " d"]


def test_changes_far_apart_are_apart() -> None:
    assert shown("a b c d e f g", "X b c d e f Y") == [
        "@@ -1,2 +1,2 @@", "-a", "+X", " b", "@@ -6,2 +6,2 @@", " f", "-g", "+Y",
    ]  # fmt: skip


def test_nothing_changed() -> None:
    changes = difference(step("a b"), step("a b"))
    assert not changes
    assert (changes.added, changes.removed) == (0, 0)


def test_new_lines_carry_their_own_place_and_kept_ones_the_new() -> None:
    old = Step("x", (Line("a", Span("f", 1, 1, 1, 2)), Line("b", Span("f", 2, 1, 2, 2))))
    new = Step("y", (Line("a", Span("f", 9, 1, 9, 2)), Line("c", Span("f", 3, 1, 3, 2))))
    (hunk,) = difference(old, new).hunks
    assert [(r.sign, r.line.span.line) for r in hunk.rows if r.line.span] == [
        (" ", 9), ("-", 2), ("+", 3),
    ]  # fmt: skip


WORDS = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)


@given(WORDS, WORDS, st.integers(0, 3))
def test_it_is_the_standard_library_s_unified_diff(before: str, after: str, context: int) -> None:
    expected = list(difflib.unified_diff(before.split(), after.split(), n=context, lineterm=""))[2:]
    assert shown(before, after, context) == expected
