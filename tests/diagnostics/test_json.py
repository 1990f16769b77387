"""Diagnostics survive the way through JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tilelang_diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Label,
    Severity,
    Span,
    from_json,
    from_json_lines,
    to_json,
    to_json_lines,
)

SPAN = Span("k.py", 2, 3, 4, 5)


def test_the_format_is_what_is_documented() -> None:
    found = Diagnostic(
        "TL204",
        Severity.ERROR,
        "K differs",
        SPAN,
        label="here",
        labels=(Label(SPAN, "there"),),
        notes=("a note",),
        help="do",
        fixes=(Fix("title", (Edit(SPAN, "new"),), Applicability.SAFE),),
        calls=(Frame("foo", SPAN),),
    )
    span = {"file": "k.py", "line": 2, "column": 3, "end_line": 4, "end_column": 5}
    assert to_json(found) == {
        "code": "TL204",
        "name": "gemm-k-mismatch",
        "severity": "error",
        "message": "K differs",
        "span": span,
        "label": "here",
        "labels": [{"span": span, "text": "there"}],
        "notes": ["a note"],
        "help": "do",
        "fixes": [
            {"title": "title", "applicability": "safe", "edits": [{"span": span, "text": "new"}]}
        ],
        "calls": [{"function": "foo", "span": span}],
    }


def test_a_reader_ignores_fields_it_does_not_know() -> None:
    found = Diagnostic("TL900", Severity.ERROR, "x")
    assert from_json(to_json(found) | {"since": "2.0"}) == found


@st.composite
def span_values(draw: st.DrawFn) -> Span:
    position = st.tuples(st.integers(1, 99), st.integers(1, 99))
    start, end = sorted((draw(position), draw(position)))
    return Span(draw(st.text(max_size=8)), *start, *end)


EDITS = st.builds(Edit, span_values(), st.text(max_size=5))
FIXES = st.builds(
    Fix, st.text(), st.lists(EDITS, max_size=2).map(tuple), st.sampled_from(Applicability)
)
DIAGNOSTICS = st.builds(
    Diagnostic,
    code=st.sampled_from(["TL101", "TL204", "TL999"]),
    severity=st.sampled_from(Severity),
    message=st.text(),
    span=st.none() | span_values(),
    label=st.text(),
    labels=st.lists(st.builds(Label, span_values(), st.text()), max_size=2).map(tuple),
    notes=st.lists(st.text(), max_size=2).map(tuple),
    help=st.none() | st.text(),
    fixes=st.lists(FIXES, max_size=2).map(tuple),
    calls=st.lists(st.builds(Frame, st.text(), span_values()), max_size=2).map(tuple),
)


@given(st.lists(DIAGNOSTICS, max_size=3))
def test_round_trip(found: list[Diagnostic]) -> None:
    text = to_json_lines(found)
    assert len(text.split("\n")) == len(found) + 1
    assert from_json_lines(text) == tuple(found)
    assert [json.loads(line) for line in text.split("\n") if line] == [to_json(d) for d in found]
