"""A saved trace is the trace; other files are refused, newer ones of the same major are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang_diagnostics import Diagnostic, Label, Severity, Span
from tilelang_trace.model import Decision, Failure, Line, Step, Trace
from tilelang_trace.ndjson import TraceFormatError, dump, load

TEXT = st.text(max_size=8)
SPANS = st.builds(
    lambda file, line, column, more: Span(file, line, column, line + more, column + more),
    st.sampled_from(["k.py", "é/h.py"]), st.integers(1, 99), st.integers(1, 99), st.integers(0, 5),
)  # fmt: skip
LINES = st.builds(Line, TEXT, st.none() | SPANS)
STEPS = st.builds(
    Step, TEXT, st.lists(LINES, max_size=4).map(tuple), st.floats(0, 10, allow_nan=False), TEXT
)
REMARKS = st.builds(
    lambda message, span: Diagnostic(
        "TL306", Severity.REMARK, message, span, labels=(Label(span, "here"),)
    ),
    TEXT, SPANS,
)  # fmt: skip
TRACES = st.builds(
    Trace, TEXT, TEXT, TEXT, st.lists(STEPS, max_size=3).map(tuple),
    st.dictionaries(TEXT, TEXT, max_size=3).map(lambda d: tuple(d.items())),
    st.dictionaries(st.sampled_from(["k.py", "é/h.py"]), TEXT).map(lambda d: tuple(d.items())),
    st.lists(REMARKS, max_size=2).map(tuple), st.none() | st.builds(Failure, TEXT, TEXT),
)  # fmt: skip
COPY, CLEAR = Span("k.py", 3, 1, 3, 13), Span("k.py", 4, 1, 4, 11)
SMALL = Trace("main", "k.py", "cpu", (Step("emit", (Line("pass", Span("k.py", 1, 1, 1, 5)),)),))


@given(TRACES)
def test_what_is_saved_is_read_back(trace: Trace) -> None:
    lines = list(dump(trace))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert load(lines) == trace


def test_the_first_record_says_what_it_is() -> None:
    first = json.loads(next(dump(SMALL)))
    assert list(first.items())[:3] == [("schema", "tilelang-trace"), ("major", 1), ("minor", 3)]


def test_a_step_says_what_became_of_the_lines_before_it() -> None:
    first = Step("emit", (Line("for k in T.serial(1):", COPY), Line("    T.clear(C)", CLEAR)))
    second = Step("tidy", (Line("T.clear(C)", CLEAR), Line("pass")), 0.1)
    third = Step("last", second.lines, decisions=(Decision("barrier", "2 barriers inserted"),))
    records = map(json.loads, dump(replace(SMALL, steps=(first, second, third))))
    steps = [(x["did"], x.get("changes")) for x in records if x.get("record") == "step"]
    body = {"head": "for k in T.serial(1)", "removed": True, "line": 1, "lines": 1}
    fates = [["dedented", 2, 1, 1], ["gone", 1, None, 1], ["new", None, 2, 1]]
    assert steps == [
        ("", None),
        ("1 dedented, +1 −1", {"fates": fates, "bodies": [body]}),
        ("2 barriers inserted", {"fates": [], "bodies": []}),
    ]


def test_newer_minor_versions_are_read() -> None:
    header, *rest = dump(SMALL)
    newer = {**json.loads(header), "minor": 7, "colour": "blue"}
    extra = json.dumps({"record": "ptx", "text": "…"}) + "\n"
    assert load([json.dumps(newer), extra, "\n", *rest]) == SMALL


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "no schema"),
        (["{}"], "no schema"),
        (["import tilelang"], "line 1 is not JSON"),
        (["[1]"], "line 1 is not an object"),
        (['{"schema": "tilelang-trace", "major": 2, "minor": 1}'], "format 2.1; .* reads 1.x"),
        (['{"schema": "tilelang-trace", "major": 1}'], "damaged"),
    ],
)
def test_other_files_are_refused(lines: list[str], reason: str) -> None:
    with pytest.raises(TraceFormatError, match=reason):
        load(lines)


def test_a_file_that_was_cut_off_keeps_what_there_is() -> None:
    *whole, _ = dump(SMALL)
    cut = load([*whole, '{"record":"begin","name":"tidy"}\n', '{"record":"st'])
    assert cut.steps == SMALL.steps
    assert cut.failure is not None
    assert (cut.failure.step, cut.failure.message[:21]) == ("tidy", "the trace was cut off")
    with pytest.raises(TraceFormatError, match="line 2 is not JSON"):
        load([whole[0], '{"record":"st\n', *whole[1:]])
