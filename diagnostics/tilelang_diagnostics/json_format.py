"""Diagnostics as JSON, both ways. The field names are a public format.

    {"code": "TL204", "name": "gemm-k-mismatch", "severity": "error", "message": "...",
     "span": SPAN or null, "label": "...",
     "labels": [{"span": SPAN, "text": "..."}],
     "notes": ["..."], "help": "..." or null,
     "fixes": [{"title": "...", "applicability": "safe" or "maybe",
                "edits": [{"span": SPAN, "text": "..."}]}],
     "calls": [{"function": "...", "span": SPAN}]}

    SPAN = {"file": "...", "line": 1, "column": 1, "end_line": 1, "end_column": 5}

Lines and columns count from 1, columns in code points, the end is exclusive. `name` is written for
people and ignored when read. Fields may be added; a reader ignores those it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tilelang_diagnostics.codes import find_code
from tilelang_diagnostics.model import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Label,
    Severity,
    Span,
)

Json = dict[str, Any]


def to_json(diagnostic: Diagnostic) -> Json:
    """A dict of plain JSON values."""
    row = find_code(diagnostic.code)
    return {
        "code": diagnostic.code,
        "name": row.name if row else None,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "span": span_to_json(diagnostic.span) if diagnostic.span else None,
        "label": diagnostic.label,
        "labels": [{"span": span_to_json(x.span), "text": x.text} for x in diagnostic.labels],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "fixes": [_fix_to_json(fix) for fix in diagnostic.fixes],
        "calls": [{"function": x.function, "span": span_to_json(x.span)} for x in diagnostic.calls],
    }


def from_json(data: Mapping[str, Any]) -> Diagnostic:
    """The diagnostic that `to_json` wrote. Raises KeyError or ValueError on anything else."""
    span = data["span"]
    return Diagnostic(
        code=data["code"],
        severity=Severity(data["severity"]),
        message=data["message"],
        span=None if span is None else span_from_json(span),
        label=data["label"],
        labels=tuple(Label(span_from_json(x["span"]), x["text"]) for x in data["labels"]),
        notes=tuple(data["notes"]),
        help=data["help"],
        fixes=tuple(_fix_from_json(x) for x in data["fixes"]),
        calls=tuple(Frame(x["function"], span_from_json(x["span"])) for x in data["calls"]),
    )


def to_json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(to_json(d), ensure_ascii=False) + "\n" for d in diagnostics)


def from_json_lines(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics that `to_json_lines` wrote."""
    # Not splitlines: a message may hold U+2028, which JSON leaves as it is.
    return tuple(from_json(json.loads(line)) for line in text.split("\n") if line.strip())


def span_to_json(span: Span) -> Json:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def span_from_json(data: Mapping[str, Any]) -> Span:
    return Span(
        file=data["file"],
        line=data["line"],
        column=data["column"],
        end_line=data["end_line"],
        end_column=data["end_column"],
    )


def _fix_to_json(fix: Fix) -> Json:
    return {
        "title": fix.title,
        "applicability": fix.applicability.value,
        "edits": [{"span": span_to_json(e.span), "text": e.text} for e in fix.edits],
    }


def _fix_from_json(data: Mapping[str, Any]) -> Fix:
    return Fix(
        title=data["title"],
        edits=tuple(Edit(span_from_json(e["span"]), e["text"]) for e in data["edits"]),
        applicability=Applicability(data["applicability"]),
    )
