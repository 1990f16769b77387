"""Reading source text never raises; edits apply where they say."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang_diagnostics import Edit, OverlappingEdits, SourceMap, Span, apply_edits
from tilelang_diagnostics.sources import split_lines


def test_given_text_wins_over_disk(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("on disk\n")
    assert SourceMap().line(str(file), 1) == "on disk"
    assert SourceMap({str(file): "in the editor\n"}).line(str(file), 1) == "in the editor"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"x = '\xe9'\n", "x = '\ufffd'"),  # Latin-1 that does not say so
        (b"# coding: latin-1\nx = '\xe9'\n", "# coding: latin-1"),
        (b"# coding: no-such\n", "# coding: no-such"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1"),  # a byte order mark
        (b"x = 1\r\ny = 2\r\n", "x = 1"),
        (b"a\x0cb\n", "a\x0cb"),  # a form feed ends no line
    ],
)
def test_any_bytes_have_lines(tmp_path: Path, data: bytes, line: str) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(data)
    assert SourceMap().line(str(file), 1) == line


def test_declared_encoding_is_used(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    assert SourceMap().line(str(file), 2) == "x = 'é'"


@pytest.mark.parametrize("name", ["/no/such/file.py", "", "<string>", "a\0b", "/"])
def test_unreadable_files_have_no_lines(name: str) -> None:
    sources = SourceMap()
    assert sources.text(name) is None
    assert sources.lines(name) == ()
    assert sources.line(name, 1) is None


@pytest.mark.parametrize("name", ["<ipython-input-1-abc>", "/tmp/ipykernel_1/never_written.py"])
def test_notebook_cells_are_found(name: str) -> None:
    linecache.cache[name] = (6, None, ["x = 1\n"], name)
    try:
        assert SourceMap().line(name, 1) == "x = 1"
    finally:
        del linecache.cache[name]


def test_edits_refer_to_the_text_before() -> None:
    text = "alpha beta\ngamma\n"
    edits = (Edit(Span("f", 1, 1, 1, 6), "A"), Edit(Span("f", 1, 7, 1, 11), "longer"),
             Edit(Span("f", 2, 1, 2, 1), "# "))  # fmt: skip
    assert apply_edits(text, edits) == "A longer\n# gamma\n"
    assert apply_edits(text, reversed(edits)) == "A longer\n# gamma\n"


def test_an_edit_may_span_lines_and_the_end() -> None:
    assert apply_edits("a\nb\nc", [Edit(Span("f", 1, 2, 3, 1), "-")]) == "a-c"
    assert apply_edits("a\n", [Edit(Span("f", 2, 1, 2, 1), "b\n")]) == "a\nb\n"
    assert apply_edits("a", [Edit(Span("f", 9, 1, 9, 1), "!")]) == "a!"


def test_windows_line_ends_stay() -> None:
    assert apply_edits("ab\r\ncd\r\n", [Edit(Span("f", 1, 2, 1, 99), "X")]) == "aX\r\ncd\r\n"
    assert apply_edits("ab\rcd", [Edit(Span("f", 2, 1, 2, 2), "X")]) == "ab\rXd"


def test_the_same_edit_twice_is_one_edit() -> None:
    edit = Edit(Span("f", 1, 1, 1, 2), "b")
    assert apply_edits("a", [edit, edit]) == "b"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(OverlappingEdits):
        apply_edits("abc", [Edit(Span("f", 1, 1, 1, 3), "x"), Edit(Span("f", 1, 2, 1, 4), "y")])


@given(st.lists(st.sampled_from(["a", "行", "\n", "\r\n", "\r", "\x0c", "\u2028"])).map("".join))
def test_every_line_is_where_edits_think_it_is(text: str) -> None:
    for number, line in enumerate(split_lines(text), 1):
        end = len(line) + 1
        edited = apply_edits(text, [Edit(Span("f", number, 1, number, end), "NEW")])
        assert split_lines(edited)[number - 1] == "NEW"
        assert len(edited) == len(text) - len(line) + 3
