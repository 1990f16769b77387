"""How a trace reads on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tilelang_diagnostics import Span
from tilelang_trace.html.data import page_data
from tilelang_trace.model import Decision, Failure, Line, Step, Trace
from tilelang_trace.terminal import duration, print_trace, trace_text

SOURCE = "import tilelang\n\nT.copy(A, s)\nT.clear(C)\n"
COPY, CLEAR = Span("k.py", 3, 1, 3, 13), Span("k.py", 4, 1, 4, 11)
TRACE = Trace(
    "main", "k.py", "cpu",
    (
        Step("emit", (Line("head:"), Line("  T.copy(A, s)", COPY), Line("  T.clear(C)", CLEAR))),
        Step("tidy", (Line("head:"), Line("  T.copy(A, s)", COPY), Line("  T.clear(C)", CLEAR)),
             0.0004, "before anything"),
        Step("lower", (Line("head:"), Line("  for i in T.serial(4):", COPY),
                       Line("    s[i] = A[i]", COPY), Line("  C[0] = 0", CLEAR)), 0.02, "to loops"),
    ),
    (("M", "4"),), (("k.py", SOURCE),),
)  # fmt: skip


def shown(trace: Trace = TRACE, **options: object) -> list[str]:
    return [text.plain.rstrip() for text in trace_text(trace, **options)]  # type: ignore[arg-type]


def test_every_pass_with_its_changes_by_python_line() -> None:
    assert shown() == [
        "main from k.py for cpu  M=4",
        "",
        "── tidy · 0.4 ms · no change  before anything",
        "",
        "── lower · 20 ms · +3 −2  to loops",
        "@@ -1,3 +1,4 @@",
        "  head:",
        "   k.py:3  T.copy(A, s)",
        "-   T.copy(A, s)",
        "   k.py:4  T.clear(C)",
        "-   T.clear(C)",
        "   k.py:3  T.copy(A, s)",
        "+   for i in T.serial(4):",
        "+     s[i] = A[i]",
        "   k.py:4  T.clear(C)",
        "+   C[0] = 0",
        "",
        "2 passes, 1 changed something, 20 ms; the slowest was lower with 20 ms",
    ]


def test_what_a_pass_did_stands_before_what_it_changed() -> None:
    barriers = Decision("barrier", "2 barriers inserted")
    steps = (*TRACE.steps[:2], replace(TRACE.steps[2], decisions=(barriers,)))
    lines = shown(replace(TRACE, steps=steps))
    assert "── lower · 20 ms · 2 barriers inserted · +3 −2  to loops" in lines


def test_only_passes_that_changed_something() -> None:
    assert not any("tidy" in line for line in shown(changed_only=True))


def test_only_the_pass_asked_for() -> None:
    lines = shown(passes=["tidy"])
    assert any("tidy" in line for line in lines)
    assert not any(line.startswith("── lower") for line in lines)


def test_the_pass_that_did_not_finish_is_named() -> None:
    failed = Trace("main", "k.py", "cpu", TRACE.steps[:2], failure=Failure("lower", "it broke"))
    assert "── lower did not finish: it broke" in shown(failed)


def test_a_trace_without_passes() -> None:
    empty = Trace("main", "k.py", "cpu", (), failure=Failure("emit", "no"))
    assert shown(empty)[-1] == "0 passes, 0 changed something, 0.0 ms"


@pytest.mark.parametrize("width", [20, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    out = io.StringIO()
    print_trace(Console(file=out, width=width, force_terminal=False), TRACE)
    lines = out.getvalue().split("\n")
    assert max(map(len, lines)) <= width
    assert len(lines) == len(shown()) + 1


def test_gone_and_new_lines_are_coloured() -> None:
    out = io.StringIO()
    print_trace(Console(file=out, force_terminal=True, color_system="standard", width=80), TRACE)
    assert "\x1b[31m-   T.copy(A, s)" in out.getvalue()
    assert "\x1b[32m+   C[0] = 0" in out.getvalue()


def test_brackets_in_kernels_are_no_markup() -> None:
    step = Step("x", (Line("A[bold]"),), 0.1)
    trace = Trace("k", "k.py", "cpu", (Step("emit", ()), step))
    out = io.StringIO()
    print_trace(Console(file=out, width=80), trace)
    assert "+ A[bold]" in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 ms"), (0.00042, "0.4 ms"), (0.0123, "12 ms"), (1.5, "1.50 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_header_counts_as_the_page_does() -> None:
    lines = ("a = T.alloc(1)", "b = T.alloc(2)", "c")
    place = [Span("k.py", n, 1, n, 9) for n in (1, 2, 3)]
    steps = (
        Step("one", tuple(map(Line, lines, place))),
        Step("two", tuple(map(Line, [x.replace(")", ", layout)") for x in lines], place))),
    )
    trace = Trace("f", "k.py", "cpu", steps)
    (header,) = [x for x in shown(trace) if x.startswith("── two")]
    assert page_data(trace)["steps"][1]["summary"] == "2 changed"
    assert header == "── two · 0.0 ms · 2 changed"
