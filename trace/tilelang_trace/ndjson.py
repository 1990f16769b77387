"""How is a trace kept in a file? One JSON object a line; a public format.

    {"schema": "tilelang-trace", "major": 1, "minor": 0, "kernel": "main", "file": "gemm.py",
     "target": "cpu", "values": {"M": "256"}, "files": ["gemm.py"]}
    {"record": "source", "file": 0, "text": "import tilelang…"}
    {"record": "step", "name": "emit", "reason": "…", "seconds": 0.0,
     "lines": [["T.clear(C)", 0, 12, 5, 12, 15], ["}"], …]}
    {"record": "remark", "diagnostic": {…}}                (see tilelang_diagnostics.json_format)
    {"record": "end", "failure": null or {"step": "…", "message": "…"}}

A line is its text and, when it has a place, the number of its file, then line, column, end line
and end column. A reader accepts any minor version of the same major and skips records and fields
it does not know; a file without its `end` was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilelang_diagnostics import Span, from_json, to_json
from tilelang_trace.model import Failure, Line, Step, Trace

SCHEMA = "tilelang-trace"
MAJOR, MINOR = 1, 0


class TraceFormatError(ValueError):
    """A file that is no trace, or one this version cannot read."""


def dump(trace: Trace) -> Iterator[str]:
    """The lines of a file, each with its line end."""
    files = {name: number for number, name in enumerate(_files(trace))}
    yield _line(
        {
            "schema": SCHEMA, "major": MAJOR, "minor": MINOR, "kernel": trace.kernel,
            "file": trace.file, "target": trace.target, "values": dict(trace.values),
            "files": list(files),
        }
    )  # fmt: skip
    for name, text in trace.sources:
        yield _line({"record": "source", "file": files[name], "text": text})
    for step in trace.steps:
        lines = [_line_to_json(line, files) for line in step.lines]
        yield _line({"record": "step", "name": step.name, "reason": step.reason,
                     "seconds": step.seconds, "lines": lines})  # fmt: skip
    for remark in trace.remarks:
        yield _line({"record": "remark", "diagnostic": to_json(remark)})
    failure = trace.failure
    ended = None if failure is None else {"step": failure.step, "message": failure.message}
    yield _line({"record": "end", "failure": ended})


def load(lines: Iterable[str]) -> Trace:
    """The trace that `dump` wrote. Raises TraceFormatError for anything else."""
    records = _records(lines)
    header = next(records, None)
    if header is None or header.get("schema") != SCHEMA:
        raise TraceFormatError("not a trace: the first record has no schema tilelang-trace")
    if header.get("major") != MAJOR:
        raise TraceFormatError(
            f"a trace of format {header.get('major')}.{header.get('minor')}; "
            f"this version reads {MAJOR}.x"
        )
    try:
        return _load(header, records)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, TraceFormatError):
            raise
        raise TraceFormatError(f"a damaged trace: {type(error).__name__}: {error}") from error


def _load(header: Mapping[str, Any], records: Iterator[dict[str, Any]]) -> Trace:
    files: list[str] = list(header["files"])
    sources: list[tuple[str, str]] = []
    steps: list[Step] = []
    remarks = []
    for record in records:
        match record.get("record"):
            case "source":
                sources.append((files[record["file"]], record["text"]))
            case "step":
                lines = tuple(_line_from_json(line, files) for line in record["lines"])
                steps.append(Step(record["name"], lines, record["seconds"], record["reason"]))
            case "remark":
                remarks.append(from_json(record["diagnostic"]))
            case "end":
                failure = record["failure"]
                return Trace(
                    header["kernel"], header["file"], header["target"], tuple(steps),
                    tuple(header["values"].items()), tuple(sources), tuple(remarks),
                    None if failure is None else Failure(failure["step"], failure["message"]),
                )  # fmt: skip
    raise TraceFormatError("the trace was cut off: it has no end record")


def _records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise TraceFormatError(f"line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise TraceFormatError(f"line {number} is not an object")
        yield record


def _files(trace: Trace) -> Iterator[str]:
    """Every file the trace mentions, each once, the kernel's first."""
    names = [name for name, _ in trace.sources]
    names += [x.span.file for step in trace.steps for x in step.lines if x.span is not None]
    yield from dict.fromkeys(names)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def _line_to_json(line: Line, files: Mapping[str, int]) -> list[Any]:
    span = line.span
    if span is None:
        return [line.text]
    place = [span.line, span.column, span.end_line, span.end_column]
    return [line.text, files[span.file], *place]


def _line_from_json(line: list[Any], files: list[str]) -> Line:
    text, *place = line
    return Line(text, Span(files[place[0]], *place[1:5]) if place else None)
