"""Which findings a comment switches off, and where."""

from __future__ import annotations

import pytest

from tilelang_diagnostics import Diagnostic, Severity, Span
from tilelang_lint.suppressions import suppressions_in


def covered(text: str, code: str = "TL306") -> list[int]:
    """The lines of `text` on which `code` is switched off."""
    found = suppressions_in(text)

    def finding(line: int) -> Diagnostic:
        return Diagnostic(code, Severity.REMARK, "m", Span("k.py", line, 1, line, 2))

    return [n for n in range(1, text.count("\n") + 2) if found.covers(finding(n), "k.py")]


def test_a_comment_behind_a_statement() -> None:
    assert covered("a = 1\nb = 2  # tilelang: ignore[TL306]\nc = 3") == [2]


def test_a_comment_anywhere_in_a_long_statement_covers_all_of_it() -> None:
    assert covered("f(\n  1,  # tilelang: ignore[bank-conflicts] why\n  2,\n)\ng()") == [1, 2, 3, 4]


def test_a_comment_of_its_own_covers_the_next_statement() -> None:
    assert covered("a = 1\n# tilelang: ignore[TL306]\nf(\n  1,\n)\nb = 2") == [3, 4, 5]


def test_other_comments_and_blank_lines_may_stand_between() -> None:
    text = "# tilelang: ignore[TL306]\n# because of that\n\na = 1\nb = 2"
    assert covered(text) == [4]


def test_only_the_header_of_a_block() -> None:
    text = "for i in x:  # tilelang: ignore[TL306]\n    a = 1\n    b = 2"
    assert covered(text) == [1]


def test_above_decorators_it_covers_them_and_the_definition() -> None:
    text = "# tilelang: ignore[TL306]\n@one\n@two(\n  1)\ndef f(x):\n    a = 1"
    assert covered(text) == [2, 3, 4, 5]


@pytest.mark.parametrize("selector", ["TL306", "tl306", "bank-conflicts", "TL3", "TL110, TL306"])
def test_ways_to_name_a_code(selector: str) -> None:
    assert covered(f"a = 1  # tilelang: ignore[{selector}]") == [1]


@pytest.mark.parametrize(
    "comment",
    [
        "# tilelang: ignore", "# tilelang: ignore[]", "# tilelang: ignore[TL204]",
        "# tilelang: ignore[no-such-name]", "# ignore[TL306]", "'# tilelang: ignore[TL306]'",
    ],
)  # fmt: skip
def test_what_is_no_suppression(comment: str) -> None:
    assert covered(f"a = 1\nb = 2; {comment}" if comment[0] == "'" else f"a = 1  {comment}") == []


def test_our_own_failures_cannot_be_hidden() -> None:
    assert covered("a = 1  # tilelang: ignore[TL9, TL900]", "TL900") == []


def test_findings_of_other_files_are_not_covered() -> None:
    found = suppressions_in("a = 1  # tilelang: ignore[TL306]")
    elsewhere = Diagnostic("TL306", Severity.REMARK, "m", Span("other.py", 1, 1, 1, 2))
    assert not found.covers(elsewhere, "k.py")


@pytest.mark.parametrize(
    "text",
    [
        "# tilelang: ignore[TL306]\nx = (", "x = '''# tilelang: ignore[TL306]",
        "\tx # tilelang: ignore[TL306]\n  y",
    ],
)  # fmt: skip
def test_broken_texts_do_not_raise(text: str) -> None:
    covered(text)


def test_a_comment_for_the_whole_file() -> None:
    assert covered("# tilelang: ignore-file[TL306]\na = 1\nb = 2") == [1, 2, 3]
    assert covered("a = 1\n    # tilelang: ignore-file[TL306]\nb = 2") == []


def test_a_string_over_several_lines_switches_nothing_off() -> None:
    quotes = '"' * 3
    said = "# tilelang: ignore-file[TL306]"
    assert suppressions_in(f"{said}\nx = 1\n").entries
    assert not suppressions_in(f"x = {quotes}\n{said}\n{quotes}\n").entries
