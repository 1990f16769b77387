"""The exact text of rendered diagnostics."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tilelang_diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Label,
    Severity,
    SourceMap,
    Span,
    render_ansi,
    render_rich,
    render_text,
    summary_line,
)

GEMM = """\
import tilelang.language as T

@T.prim_func
def main(A: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        T.gemm(A_shared, B_shared, C_local)
"""


def mark(source: str, text: str, occurrence: int = 1, file: str = "k.py") -> Span:
    """The span of `text` in `source`."""
    at = -1
    for _ in range(occurrence):
        at = source.index(text, at + 1)
    end = at + len(text)
    line, column = source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)
    end_line, end_column = source.count("\n", 0, end) + 1, end - source.rfind("\n", 0, end)
    return Span(file, line, column, end_line, end_column)


def error(message: str, span: Span | None = None, **fields: object) -> Diagnostic:
    return Diagnostic("TL204", Severity.ERROR, message, span, **fields)  # type: ignore[arg-type]


def check(diagnostic: Diagnostic, source: str, expect: str, width: int = 80, **files: str) -> None:
    """`diagnostic` about k.py (and other files) renders as `expect`."""
    sources = SourceMap({"k.py": source} | {f"{name}.py": text for name, text in files.items()})
    got = render_text([diagnostic], sources, width, summary=False)
    assert got.rstrip("\n") == dedent(expect).strip("\n")


def test_several_labels_on_one_line() -> None:
    check(
        error(
            "`A_shared` has K = 64 but `B_shared` has K = 32",
            mark(GEMM, "T.gemm"),
            labels=(
                Label(mark(GEMM, "A_shared"), "K = 64 here"),
                Label(mark(GEMM, "B_shared"), "K = 32 here"),
            ),
            notes=("A is read as M x K, B as K x N",),
            help="pass transpose_B=True if `B_shared` is stored as N x K",
        ),
        GEMM,
        """
        error[TL204]: `A_shared` has K = 64 but `B_shared` has K = 32
         --> k.py:6:9
          |
        6 |         T.gemm(A_shared, B_shared, C_local)
          |         ^^^^^^ --------  -------- K = 32 here
          |                |
          |                K = 64 here
          = note: A is read as M x K, B as K x N
          = help: pass transpose_B=True if `B_shared` is stored as N x K
        """,
    )


def test_three_hanging_labels_are_read_from_the_right() -> None:
    source = "f(alpha, beta, gamma)\n"
    labels = tuple(Label(mark(source, n), f"this is {n}") for n in ("alpha", "beta", "gamma"))
    check(
        error("no", mark(source, "f"), label="called here", labels=labels),
        source,
        """
        error[TL204]: no
         --> k.py:1:1
          |
        1 | f(alpha, beta, gamma)
          | ^ -----  ----  ----- this is gamma
          | | |      |
          | | |      this is beta
          | | this is alpha
          | called here
        """,
    )


def test_a_short_mark_lies_on_a_longer_one() -> None:
    source = "f(alpha, beta)\n"
    check(
        error("no", mark(source, "f(alpha, beta)"), labels=(Label(mark(source, "beta"), "b"),)),
        source,
        """
        error[TL204]: no
         --> k.py:1:1
          |
        1 | f(alpha, beta)
          | ^^^^^^^^^----^
          |          |
          |          b
        """,
    )


def test_primary_is_drawn_over_a_label_of_the_same_span() -> None:
    source = "x = A[i]\n"
    span = mark(source, "A[i]")
    check(
        error("no", span, label="read", labels=(Label(span, "also written"),)),
        source,
        """
        error[TL204]: no
         --> k.py:1:5
          |
        1 | x = A[i]
          |     ^^^^ read
          |     |
          |     also written
        """,
    )


def test_lines_far_apart_are_separated_and_a_gap_of_one_is_filled() -> None:
    source = "a\nb\nc\nd\ne\nf\ng\n"
    labels = (Label(mark(source, "c"), "two"), Label(mark(source, "g"), "three"))
    check(
        error("no", mark(source, "a"), label="one", labels=labels),
        source,
        """
        error[TL204]: no
         --> k.py:1:1
          |
        1 | a
          | ^ one
        2 | b
        3 | c
          | - two
        ...
        7 | g
          | - three
        """,
    )


def test_a_span_over_several_lines_has_a_rail() -> None:
    source = "with T.Kernel(\n    (1, 1),\n    threads=32,\n) as (a, b):\n    pass\n"
    check(
        error(
            "the grid is one tuple",
            mark(source, "T.Kernel(\n    (1, 1),\n    threads=32,\n)"),
            label="this launch",
            labels=(Label(mark(source, "(1, 1)"), "a tuple"),),
        ),
        source,
        """
        error[TL204]: the grid is one tuple
         --> k.py:1:6
          |
        1 |   with T.Kernel(
          |  ______^
        2 | |     (1, 1),
          | |     ------ a tuple
        3 | |     threads=32,
        4 | | ) as (a, b):
          | |_^ this launch
        """,
    )


def test_a_long_span_that_starts_its_line_shows_its_ends() -> None:
    body = "".join(f"    step_{i}()\n" for i in range(9))
    source = f"for i in range(3):\n{body}"
    check(
        error("no", mark(source, source.rstrip("\n")), label="this loop"),
        source,
        """
        error[TL204]: no
          --> k.py:1:1
           |
         1 | / for i in range(3):
         2 | |     step_0()
        ...  |
         9 | |     step_7()
        10 | |     step_8()
           | |____________^ this loop
        """,
    )


def test_two_overlapping_rails() -> None:
    source = "a = f(\n  g(\n    1),\n  2)\n"
    check(
        error(
            "no",
            mark(source, "g(\n    1)"),
            label="inner",
            labels=(Label(mark(source, "f(\n  g(\n    1),\n  2)"), "outer"),),
        ),
        source,
        """
        error[TL204]: no
         --> k.py:2:3
          |
        1 |     a = f(
          |  _______-
        2 | | /   g(
        3 | | |     1),
          | | |______^ inner
        4 | |     2)
          | |______- outer
        """,
    )


def test_several_files() -> None:
    other = "def foo(A):\n    T.copy(A, A)\n"
    check(
        error(
            "`A` is copied onto itself",
            mark(other, "T.copy", file="lib.py"),
            calls=(Frame("foo", mark(GEMM, "T.gemm")),),
        ),
        GEMM,
        """
        error[TL204]: `A` is copied onto itself
         --> lib.py:2:5
          |
        2 |     T.copy(A, A)
          |     ^^^^^^
         ::: k.py:6:9
          |
        6 |         T.gemm(A_shared, B_shared, C_local)
          |         ------ in `foo`, called here
        """,
        lib=other,
    )


def test_a_call_chain_runs_inside_out_and_long_ones_lose_their_middle() -> None:
    source = "".join(f"call_{i}()\n\n\n" for i in range(9))
    frames = tuple(Frame(f"m{i}", mark(source, f"call_{i}")) for i in range(9))
    text = render_text([error("deep", calls=frames)], SourceMap({"k.py": source}))
    shown = [i for i in range(9) if f"in `m{i}`, called here" in text]
    assert shown == [0, 1, 2, 6, 7, 8]
    assert "3 more calls are not shown" in text


def test_tabs_are_expanded() -> None:
    source = "if x:\n\ty =\tfoo(bar)\n"
    check(
        error("no", mark(source, "foo"), label="here"),
        source,
        """
        error[TL204]: no
         --> k.py:2:6
          |
        2 |     y = foo(bar)
          |         ^^^ here
        """,
    )


def test_wide_characters_take_two_cells() -> None:
    source = 'msg = "行列 😀", foo("列")\n'
    check(
        error("no", mark(source, "foo"), label="ここ", labels=(Label(mark(source, '"列"'), "列"),)),
        source,
        """
        error[TL204]: no
         --> k.py:1:15
          |
        1 | msg = "行列 😀", foo("列")
          |                  ^^^ ---- 列
          |                  |
          |                  ここ
        """,
    )


def test_joined_emoji_and_combining_marks() -> None:
    source = 'a = "👩‍🔬e\u0301", foo()\n'
    text = render_text([error("no", mark(source, "foo"))], SourceMap({"k.py": source}))
    line, caret = (row.partition(" | ")[2] for row in text.split("\n")[3:5])
    assert caret.index("^") == cell_len(line[: line.index("foo")])


def test_control_characters_cannot_reach_the_terminal() -> None:
    source = 'a = "\x1b[31m\u202e" + b\n'
    text = render_text([error("no", mark(source, "b", 1), label="x")], SourceMap({"k.py": source}))
    assert "\x1b" not in text and "\u202e" not in text
    assert "␛[31m\ufffd" in text


def test_a_narrow_terminal_clips_the_source_and_wraps_the_notes() -> None:
    source = f"{' ' * 20}value = some_function(argument_one, argument_two, argument_three)\n"
    check(
        error(
            "no",
            mark(source, "argument_two"),
            label="this one",
            help="pass something that is rather shorter than what is there",
        ),
        source,
        """
        error[TL204]: no
         --> k.py:1:57
          |
        1 | …t_one, argument_two, argument…
          |         ^^^^^^^^^^^^ this one
          = help: pass something that is
                  rather shorter than what
                  is there
        """,
        width=35,
    )


def test_a_long_label_moves_left_and_wraps() -> None:
    source = f"{' ' * 30}x = y\n"
    check(
        error("no", mark(source, "y"), label="this name is not bound anywhere in the file"),
        source,
        """
        error[TL204]: no
         --> k.py:1:35
          |
        1 |                               x = y
          |                                   ^
          |                                   |
          | this name is not bound anywhere in the
          | file
        """,
        width=44,
    )


def test_fix_is_shown_as_changed_lines() -> None:
    source = "with T.Kernel((1, 1)) as (a, b):\n    pass\n"
    span = mark(source, "(1, 1)")
    check(
        error(
            "tuple",
            span,
            fixes=(
                Fix("write the extents as arguments", (Edit(span, "1, 1"),), Applicability.SAFE),
            ),
        ),
        source,
        """
        error[TL204]: tuple
         --> k.py:1:15
          |
        1 | with T.Kernel((1, 1)) as (a, b):
          |               ^^^^^^
          = fix: write the extents as arguments
          |
        1 - with T.Kernel((1, 1)) as (a, b):
        1 + with T.Kernel(1, 1) as (a, b):
        """,
    )


def test_a_fix_that_needs_judgement_says_so_and_shows_only_what_changes() -> None:
    source = "a = 1\nb = 2\nc = 3\n"
    edits = (Edit(mark(source, "1"), "10"), Edit(mark(source, "3"), "30\nd = 40"))
    check(
        error("numbers", fixes=(Fix("scale", edits),)),
        source,
        """
        error[TL204]: numbers
          = fix: scale (a suggestion)
          |
        1 - a = 1
        1 + a = 10
          |
        3 - c = 3
        3 + c = 30
        4 + d = 40
        """,
    )


def test_overlapping_edits_show_the_title_only() -> None:
    span = Span("k.py", 1, 1, 1, 3)
    fix = Fix("both", (Edit(span, "x"), Edit(Span("k.py", 1, 2, 1, 3), "y")), Applicability.SAFE)
    check(error("no", fixes=(fix,)), "abc\n", "error[TL204]: no\n  = fix: both")


def test_indented_help_lines_keep_their_shape() -> None:
    check(
        error(
            "no", help="write\n    with T.Kernel(1, threads=128) as bx: ...  # however long it is"
        ),
        "",
        """
        error[TL204]: no
          = help: write
                      with T.Kernel(1, threads=128) as bx: ...  # however long it is
        """,
        width=40,
    )


def test_without_source_the_place_and_the_labels_remain() -> None:
    check(
        error(
            "no",
            Span("gone.py", 3, 1, 3, 2),
            label="here",
            labels=(Label(Span("gone.py", 9, 1, 9, 2), "and there"),),
        ),
        "",
        """
        error[TL204]: no
         --> gone.py:3:1
          = here: here
          = here: gone.py:9:1: and there
        """,
    )


@pytest.mark.parametrize(
    ("span", "line"),
    [
        (Span("k.py", 1, 5, 1, 5), "    ^"),  # empty, at the end
        (Span("k.py", 1, 90, 1, 99), "    ^"),  # beyond the line
        (Span("k.py", 1, 2, 1, 2), " ^"),  # empty, inside
        (Span("k.py", 1, 3, 1, 99), "  ^^"),  # ends beyond the line
    ],
)
def test_odd_columns(span: Span, line: str) -> None:
    text = render_text([error("no", span)], SourceMap({"k.py": "abcd\n"}))
    assert text.split("\n")[4] == f"  | {line}"


def test_summary_counts_by_severity() -> None:
    severities = (Severity.WARNING, Severity.ERROR, Severity.ERROR, Severity.REMARK)
    found = [Diagnostic("TL204", s, "x") for s in severities]
    assert summary_line(found) == "found 2 errors, 1 warning, 1 remark"
    assert render_text(found, SourceMap()).endswith("\n\nfound 2 errors, 1 warning, 1 remark\n")
    assert summary_line([]) == "found no problems"
    assert render_text([], SourceMap()) == ""


def test_colour_adds_nothing_but_colour() -> None:
    found = [error("no", mark(GEMM, "T.gemm"), label="here", help="do")]
    sources = SourceMap({"k.py": GEMM})
    plain = render_text(found, sources)
    rich_text = render_rich(found, sources)
    assert [r.rstrip() for r in rich_text.plain.split("\n")] == plain.split("\n")
    ansi = render_ansi(found, sources)
    assert "\x1b[1;31merror[TL204]\x1b[0m" in ansi
    assert "\x1b[1;31m^^^^^^\x1b[0m" in ansi


SOURCE_LINES = st.lists(
    st.text(st.sampled_from("ab (),\t行😀é\u0301\x1b"), max_size=60), min_size=1, max_size=12
)
POSITIONS = st.tuples(st.integers(1, 14), st.integers(1, 70))


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start, end = sorted((draw(POSITIONS), draw(POSITIONS)))
    return Span("k.py", *start, *end)


@settings(max_examples=400, deadline=None)
@given(
    SOURCE_LINES,
    spans(),
    st.lists(st.tuples(spans(), st.sampled_from(["", "a label", "列" * 30])), max_size=4),
    st.integers(1, 100),
)
def test_any_spans_at_any_width(
    lines: list[str], span: Span, labels: list[tuple[Span, str]], width: int
) -> None:
    found = error("no", span, label="primary", labels=tuple(Label(*x) for x in labels))
    text = render_text([found], SourceMap({"k.py": "\n".join(lines)}), width)
    assert text == render_text([found], SourceMap({"k.py": "\n".join(lines)}), width)
    assert "primary" in text
    if width >= 60:
        drawn = [row for row in text.split("\n") if row.lstrip(" 0123456789").startswith("|")]
        assert max(map(cell_len, drawn), default=0) <= width + 60 * ("列" * 30 in text)
