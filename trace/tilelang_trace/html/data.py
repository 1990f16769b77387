"""What does the page hold? The trace as tables: each text, place and program once.

    files     [[name, document]]          the Python that places point into
    spans     [[file, line, column, end line, end column]]
    texts     [text], colours [runs]       every distinct line
    documents [{"t": [text], "s": [span or -1], "o": {line: [spans of calls]}}]
    steps     [{name, depth, phase, seconds, …, document,
                "rows": [[sign, old, new, count, words…]]}]       inner ones after what is around
    codes     [{kind, language, note, document}]
    layouts, timeline, resources, pipelines, remarks

Rows align the program before a pass with that after it: `=` is a run of `count` kept lines, `⇤` and
`⇥` one of lines that were dedented or indented, `-`, `+`, `<` and `>` stand for one line, `~` and
`*` for a pair that was renamed or changed, and `·` says what became of the body of the line before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from rich.text import Text

from tilelang_diagnostics import Diagnostic, Span
from tilelang_trace.did import decisions_in_short
from tilelang_trace.diff import aligned
from tilelang_trace.html.colour import colours
from tilelang_trace.model import Line, Step, Trace, inside
from tilelang_trace.pipelines import pipeline_text, pipelines
from tilelang_trace.structure import Match, Structure, line_changes, structure
from tilelang_trace.timing import entries

Json = dict[str, Any]


def page_data(trace: Trace) -> Json:
    """Plain JSON values."""
    tables = _Tables()
    files: list[tuple[str, int]] = [
        (name, tables.document([Line(t) for t in text.split("\n")], "python"))
        for name, text in trace.sources
    ]
    tables.files = {name: n for n, (name, _) in enumerate(trace.sources)}
    steps = _steps(trace, tables)
    codes = [
        {"kind": c.kind, "language": c.language, "note": c.note,
         "document": tables.document(c.lines, c.language)}
        for c in trace.codes
    ]  # fmt: skip
    failure = trace.failure
    return {
        "kernel": trace.kernel, "file": trace.file, "target": trace.target,
        "values": list(trace.values), "options": list(trace.options), "version": trace.version,
        "failure": None if failure is None else {
            "step": failure.step, "message": failure.message, "exception": failure.exception,
        },
        "files": [[os.path.basename(name), name, document] for name, document in files],
        "steps": steps, "codes": codes, "timeline": _timeline(trace),
        "layouts": [
            {"name": x.name, "kind": x.kind, "shape": list(x.shape), "dtype": x.dtype,
             "short": x.short, "why": x.why, "cost": x.cost, "span": tables.span(x.span),
             "drawing": x.drawing}
            for x in trace.layouts
        ],
        "resources": [
            {"kernel": r.kernel, "threads": r.threads, "registers": r.registers,
             "spills": r.spills, "stack": r.stack, "shared": r.shared, "blocks": r.blocks,
             "counts": [list(p) for p in r.counts]}
            for r in trace.resources
        ],
        "pipelines": _pipelines(trace, tables),
        "remarks": [_remark(d, tables) for d in trace.remarks],
        "documents": tables.documents, "spans": tables.spans, **tables.texts(),
    }  # fmt: skip


class _Tables:
    """Gives everything a number the first time it is seen."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.spans: list[list[int]] = []
        self.documents: list[Json] = []
        self._span_numbers: dict[Span, int] = {}
        self._text_numbers: dict[tuple[str, str], int] = {}
        self._document_numbers: dict[tuple[Line, ...], int] = {}

    def span(self, span: Span | None) -> int:
        """The number of a place; -1 for none, or in a file that is not here."""
        if span is None or span.file not in self.files:
            return -1
        found = self._span_numbers.get(span)
        if found is None:
            found = self._span_numbers[span] = len(self.spans)
            self.spans.append([self.files[span.file], span.line, span.column, span.end_line,
                               span.end_column])  # fmt: skip
        return found

    def document(self, lines: Sequence[Line], language: str) -> int:
        """The number of a program."""
        key = tuple(lines)
        found = self._document_numbers.get(key)
        if found is None:
            found = self._document_numbers[key] = len(self.documents)
            others = {
                n: [self.span(f.span) for f in line.calls]
                for n, line in enumerate(lines) if line.calls
            }  # fmt: skip
            self.documents.append({
                "t": [self._text(line.text, language) for line in lines],
                "s": [self.span(line.span) for line in lines], "o": others,
            })  # fmt: skip
        return found

    def texts(self) -> Json:
        """The distinct lines, and their colours."""
        painted: list[str] = [""] * len(self._text_numbers)
        by_language: dict[str, list[tuple[str, int]]] = {}
        for (text, language), number in self._text_numbers.items():
            by_language.setdefault(language, []).append((text, number))
        for language, found in by_language.items():
            runs = colours([text for text, _ in found], language)
            for (_, number), run in zip(found, runs, strict=True):
                painted[number] = run
        return {"texts": [text for text, _ in self._text_numbers], "colours": painted}

    def _text(self, text: str, language: str) -> int:
        return self._text_numbers.setdefault((text, language), len(self._text_numbers))


def _steps(trace: Trace, tables: _Tables) -> list[Json]:
    """Every pass, each with those inside of it behind it."""
    out: list[Json] = []
    before: tuple[int, Step] | None = None
    for step in trace.steps:
        if before is not None and before[1].attempt != step.attempt:
            before = None
        here = len(out), step
        out.append(_step(before, step, tables))
        if before is not None:
            numbers = {id(before[1]): before[0]}
            for old, new in inside(before[1], step, step.name, step.inner):
                numbers[id(new)] = len(out)
                out.append(_step((numbers[id(old)], old), new, tables))
        before = here
    return out


def _step(earlier: tuple[int, Step] | None, step: Step, tables: _Tables) -> Json:
    number, before = (-1, None) if earlier is None else earlier
    became = None if before is None or before.lines == step.lines else structure(before, step)
    found: Json = {
        "name": step.name, "depth": step.name.count("/"), "phase": step.phase,
        "seconds": step.seconds, "reason": step.reason,
        "resident": step.resident, "attempt": step.attempt,
        "document": tables.document(step.lines, "python"), "decided": decisions_in_short(step),
        "decisions": [
            {"kind": d.kind, "text": d.text, "why": d.why, "said": d.said,
             "span": tables.span(d.span),
             "rejected": [list(r) for r in d.rejected],
             "places": [[tables.span(span), text] for span, text in d.places]}
            for d in step.decisions
        ],
        "symbols": [
            [s.name, s.scope, f"{s.dtype}[{', '.join(s.shape)}]",
             ", ".join(f"{k}={v}" for k, v in s.said), tables.span(s.span)]
            for s in step.symbols
        ],
    }  # fmt: skip
    if before is not None and became is not None:
        found |= {
            "before": number, "rows": list(_rows(before, step, became)),
            "summary": became.summary() if before.text != step.text else "",
        }  # fmt: skip
    return found


def _rows(before: Step, after: Step, found: Structure) -> Iterator[list[Any]]:
    old, new = found.of_old(), found.of_new()
    removed = {x.at: x.said for x in found.bodies if x.is_removed}
    come = {x.at: x.said for x in found.bodies if not x.is_removed}
    a, b = [x.text for x in before.lines], [x.text for x in after.lines]
    for same, left, right in aligned(found, before, after):
        if not same:
            for row in _replaced(left, right, old, new, a, b):
                yield row
                said = removed.get(row[1]), come.get(row[2])
                yield from (["·", row[1], row[2], 1, x] for x in said if x is not None)
            continue
        at = right.start
        for fate, run in groupby(right, key=lambda n: new[n].fate):
            count = len(list(run))
            yield [_SIGNS[fate], left.start + at - right.start, at, count]
            at += count


_SIGNS: Final = {"kept": "=", "dedented": "⇤", "indented": "⇥"}


def _replaced(
    gone: range, come: range, old: dict[int, Match], new: dict[int, Match],
    a: Sequence[str], b: Sequence[str],
) -> Iterator[list[Any]]:  # fmt: skip
    """Pairs of renamed or changed lines beside each other, in the order of both."""
    waiting = list(gone)
    for n in come:
        match = new[n]
        other = match.old
        if match.fate not in ("renamed", "changed") or other is None or other not in waiting:
            yield [">" if match.fate == "moved" else "+", -1, n, 1]
            continue
        at = waiting.index(other)
        yield from (_left(m, old) for m in waiting[:at])
        waiting = waiting[at + 1 :]
        words = [list(map(list, w)) for w in line_changes(a[other], b[n])]
        yield ["~" if match.fate == "renamed" else "*", other, n, 1, *words]
    yield from (_left(m, old) for m in waiting)


def _left(n: int, old: dict[int, Match]) -> list[Any]:
    return ["<" if old[n].fate == "moved" else "-", n, -1, 1]


def _timeline(trace: Trace) -> list[Json]:
    return [
        {"name": e.name, "phase": e.phase, "start": e.start, "seconds": e.seconds,
         "resident": e.resident, "changed": e.changed, "depth": e.depth, "grown": e.grown}
        for e in entries(trace, inner=True)
    ]  # fmt: skip


def _pipelines(trace: Trace, tables: _Tables) -> Json:
    text: list[Text] = list(pipeline_text(trace))
    return {
        "text": [line for part in text for line in part.plain.split("\n")],
        "verdicts": [
            {"verdict": p.verdict, "span": tables.span(p.span)} for p in pipelines(trace)
        ],
    }  # fmt: skip


def _remark(found: Diagnostic, tables: _Tables) -> Json:
    return {
        "code": found.code, "severity": found.severity.value, "message": found.message,
        "help": found.help or "", "notes": list(found.notes), "span": tables.span(found.span),
        "where": "" if found.span is None
        else f"{os.path.basename(found.span.file)}:{found.span.line}",
    }  # fmt: skip
