"""How is a trace kept in a file? One JSON object a line; a public format, 1.3.

    {"schema": "tilelang-trace", "major": 1, "minor": 3, "kernel": "main", "file": "gemm.py",
     "target": "cpu", "values": {"M": "256"}, "files": ["gemm.py"], "options": {}, "version": "…"}
    {"record": "source", "file": 0, "name": "gemm.py", "text": "import tilelang…" or null}
    {"record": "program", "data": "…"}                     what a replay starts from, opaque
    {"record": "layout", "name": "A_s", "kind": "shared", "shape": ["64"], "dtype": "float16",
     "short": "…", "why": "…", "span": PLACE, "drawing": "<svg…", "cost": "…"}
    {"record": "begin", "name": "lower_gpu_ops", "depth": 0}
    {"record": "inner", "name": "drop_unused", "depth": 1, "seconds": 0.0, "start": 0.0,
     "resident": 0, "lines": [LINE]}
    {"record": "step", "name": "emit", "reason": "…", "seconds": 0.0, "phase": "tiles",
     "attempt": 0, "resident": 0, "lines": [["T.clear(C)", 0, 12, 5, 12, 15], ["}"], …],
     "decisions": [{"kind": "copy", "text": "…", "why": "…", "span": PLACE,
       "rejected": [["TMA", "why not"]], "places": [[PLACE, "what is there"]]}],
     "remarks": [DIAGNOSTIC],
     "symbols": [{"name": "A_s", "scope": "shared.dyn", "dtype": "float16", "shape": ["64", "32"],
       "said": {"layout": "…", "versions": "3"}, "span": PLACE}], "did": "2 barriers inserted",
     "changes": {"fates": [["dedented", 9, 8, 12], ["gone", 8, null, 1]],
       "bodies": [{"head": "for k in T.serial(1)", "removed": true, "line": 8, "lines": 12}]}}
    {"record": "part", "name": "generate", "seconds": 0.3, "phase": "code", "position": 20,
     "resident": 0}
    {"record": "code", "kind": "source", "language": "cuda", "note": "", "lines": [LINE]}
    {"record": "resources", "kernel": "…", "threads": 128, "registers": 90, "spills": 0,
     "stack": 0, "shared": 49152, "blocks": 2, "counts": {"mma": 64}}
    {"record": "binary", "file": "main.cu", "data": "…"}    a cubin, compressed, in base 85
    {"record": "remark", "diagnostic": DIAGNOSTIC}         (see tilelang_diagnostics.json_format)
    {"record": "end", "failure": null or {"step": "…", "message": "…", "exception": "…",
     "code": "TL900", "within": "drop_unused"}}

A LINE is its text and, when it has a place, the number of its file, then line, column, end line
and end column; then may follow an object: `calls`, a list of [function, file, line, column, end
line, end column], and `origin`, the line of the generated source that PTX or machine code is from.
A PLACE is the five numbers alone, or null. `begin` stands before each pass: a file that ends
without `end` was cut off in the pass that has begun last. A `source` names its file, which may be
new to the table of the header.

Phases hold passes and parts, and these hold what is `inner`, to any depth. Such a record stands
before that of what is around it, which is the next one of a smaller depth; a step or part has depth
0. Its `lines` are empty where it made no program, and `start` counts from the beginning of what is
around it. Since 1.2: `inner`, `rejected`, `places`, `depth`, `within` and `resident` of parts.

A recording holds the `binary` in place of machine code and of the `counts` of `resources`; whoever
reads it disassembles it (`columns.with_machine_code`). A layout that is drawn like an earlier one
says the number of that record among the layouts as `like`, and has no drawing of its own. Since
1.2, both.

`did` says in short what a pass did, and `changes`, of a step that follows another, what became of
the lines before it: each a fate (`dedented`, `indented`, `moved`, `renamed`, `changed`, `gone`,
`new`), the first line before and the first after, from 1, and how many. What is missing was kept.
A `head` is a line that went (`removed`) or came around a body whose lines stayed. Both follow from
the rest, and no reader needs them. Since 1.3.

A reader accepts any minor version of the same major and skips records and fields it does not know.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from tilelang_diagnostics import Diagnostic, Frame, Span, from_json
from tilelang_trace.model import (
    Binary,
    Code,
    Decision,
    Failure,
    Inner,
    LayoutShot,
    Line,
    Part,
    Resources,
    Step,
    Symbol,
    Trace,
)
from tilelang_trace.typed import a_count, a_text, checked, pairs
from tilelang_trace.writer import MAJOR, SCHEMA, Writer

_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_DEEPEST: Final = 100  # of what runs inside of something else


class TraceFormatError(ValueError):
    """A file that is no trace, or one this version cannot read."""


def dump(trace: Trace) -> Iterator[str]:
    """The lines of a file, each with its line end."""
    lines: list[str] = []
    writer = Writer(lines.append)
    writer.header(trace, (name for name, _ in trace.sources))
    for name, text in trace.sources:
        writer.source(name, text)
    if trace.program:
        writer.program(trace.program)
    for shot in trace.layouts:
        writer.layout(shot)
    for step in trace.steps:
        writer.within(step.inner)
        writer.step(step)
    for part in trace.parts:
        writer.within(part.inner)
        writer.part(part)
    for code in trace.codes:
        writer.code(code)
    for used in trace.resources:
        writer.resources(used)
    if trace.binary is not None:
        writer.binary(trace.binary)
    for remark in trace.remarks:
        writer.remark(remark)
    if trace.failure is not None:
        writer.within(trace.failure.inner)
    writer.end(trace.failure)
    yield from lines


def load(lines: Iterable[str]) -> Trace:
    """The trace that was written; of one that was cut off, what there is, with a failure that says
    so. Raises TraceFormatError for anything else."""
    records = _records(lines)
    header = next(records, None)
    if header is None or header.get("schema") != SCHEMA:
        raise TraceFormatError("not a trace: the first record has no schema tilelang-trace")
    if header.get("major") != MAJOR:
        raise TraceFormatError(
            f"a trace of format {header.get('major')}.{header.get('minor')}; "
            f"this version reads {MAJOR}.x"
        )
    with _damage(1):
        reader = _Reader(header)
    return reader.read(records)


@contextmanager
def _damage(number: int) -> Iterator[None]:
    """What goes wrong with a record is told of it."""
    try:
        yield
    except (
        KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError, RecursionError,
        zlib.error,
    ) as error:  # fmt: skip
        if isinstance(error, TraceFormatError):
            raise
        raise TraceFormatError(
            f"damaged trace: record {number}: {type(error).__name__}: {error}"
        ) from error


class _Reader:
    def __init__(self, header: Mapping[str, Any]) -> None:
        self.head = checked(Trace(
            header["kernel"], header["file"], header["target"], (), pairs(header["values"]),
            options=pairs(header.get("options", {})), version=header.get("version", ""),
        ))  # fmt: skip
        self.files: dict[int, str] = dict(enumerate(map(a_text, header["files"])))
        self.sources: list[tuple[str, str]] = []
        self.steps: list[Step] = []
        self.parts: list[Part] = []
        self.codes: list[Code] = []
        self.resources: list[Resources] = []
        self.layouts: list[LayoutShot] = []
        self.remarks: list[Diagnostic] = []
        self.program = ""
        self.binary: Binary | None = None
        self.running: list[str] = []
        self._inner: list[tuple[int, Inner]] = []  # what waits for what is around it

    def read(self, records: Iterator[dict[str, Any]]) -> Trace:
        for number, record in enumerate(records, 2):
            with _damage(number):
                if record.get("record") == "end":
                    return self._trace(_failure(record["failure"], self._taken(1)))
                self._record(record)
        message = "the trace was cut off: the process ended while it was written"
        step, *within = self.running or ["emit"]
        return self._trace(Failure(step, message, within="/".join(within), inner=self._taken(1)))

    def _trace(self, failure: Failure | None) -> Trace:
        return replace(
            self.head, steps=tuple(self.steps), sources=tuple(self.sources),
            remarks=tuple(self.remarks), failure=failure, parts=tuple(self.parts),
            codes=tuple(self.codes), resources=tuple(self.resources), layouts=tuple(self.layouts),
            program=self.program, binary=self.binary,
        )  # fmt: skip

    def _record(self, record: Mapping[str, Any]) -> None:
        match record.get("record"):
            case "source":
                number = a_count(record["file"])
                name = a_text(record.get("name", self.files.get(number, "")))
                self.files[number] = name
                if record["text"] is not None:
                    self.sources.append((name, a_text(record["text"])))
            case "program":
                self.program = a_text(record["data"])
                zlib.decompress(base64.b85decode(self.program))
            case "begin":
                depth = self._depth(record.get("depth", 0))
                self.running[depth:] = [a_text(record["name"])]
            case "inner":
                depth = self._depth(record["depth"])
                del self.running[depth:]
                lines = tuple(self._line(x) for x in record["lines"])
                self._inner.append((depth, checked(Inner(
                    record["name"], record["seconds"], record["start"], record["resident"], lines,
                    self._taken(depth + 1)))))  # fmt: skip
            case "step":
                self.steps.append(self._step(record))
            case "part":
                self.parts.append(checked(Part(
                    record["name"], record["seconds"], record["phase"], record["position"],
                    record.get("resident", 0), self._taken(1))))  # fmt: skip
            case "code":
                shown = tuple(self._line(x) for x in record["lines"])
                self.codes.append(checked(
                    Code(record["kind"], record["language"], shown, record["note"])
                ))  # fmt: skip
            case "layout":
                like = record.get("like")
                drawing = record["drawing"] if like is None else self.layouts[a_count(like)].drawing
                self.layouts.append(checked(LayoutShot(
                    record["name"], record["kind"], tuple(record["shape"]), record["dtype"],
                    record["short"], record["why"], self._place(record["span"]), drawing,
                    record["cost"])))  # fmt: skip
            case "binary":
                self.binary = checked(Binary(
                    record["file"], zlib.decompress(base64.b85decode(record["data"]))
                ))  # fmt: skip
            case "resources":
                self.resources.append(checked(Resources(
                    record["kernel"], record["threads"], record["registers"], record["spills"],
                    record["stack"], record["shared"], record["blocks"],
                    pairs(record["counts"]))))  # fmt: skip
            case "remark":
                self.remarks.append(checked(from_json(record["diagnostic"])))

    def _step(self, record: Mapping[str, Any]) -> Step:
        decisions = tuple(
            checked(Decision(
                d["kind"], d["text"], d["why"], self._place(d["span"]),
                tuple((way, why) for way, why in d.get("rejected", ())),
                tuple((span, text) for place, text in d.get("places", ())
                      if (span := self._place(place)) is not None),
            ))
            for d in record.get("decisions", ())
        )  # fmt: skip
        return checked(Step(
            record["name"], tuple(self._line(x) for x in record["lines"]), record["seconds"],
            record["reason"], record.get("phase", ""), record.get("attempt", 0),
            record.get("resident", 0), decisions,
            tuple(checked(from_json(d)) for d in record.get("remarks", ())),
            tuple(
                checked(Symbol(s["name"], s["scope"], s["dtype"], tuple(s["shape"]),
                               pairs(s["said"]), self._place(s["span"])))
                for s in record.get("symbols", ())
            ),
            self._taken(1),
        ))  # fmt: skip

    @staticmethod
    def _depth(value: Any) -> int:
        depth = a_count(value)
        if depth > _DEEPEST:
            raise ValueError(f"{depth} is too deep")
        return depth

    def _taken(self, depth: int) -> tuple[Inner, ...]:
        """What ran inside of what is read now, which is one less deep."""
        at = len(self._inner)
        while at and self._inner[at - 1][0] >= depth:
            at -= 1
        found = tuple(inner for _, inner in self._inner[at:])
        del self._inner[at:]
        return found

    def _line(self, row: list[Any]) -> Line:
        text, *rest = row
        if type(text) is not str:
            raise TypeError("the text of a line is no string")
        more = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        calls = tuple(
            Frame(a_text(name), span) for name, *place in more.get("calls", ())
            if (span := self._place(place)) is not None
        )  # fmt: skip
        origin = more.get("origin")
        return Line(text, self._place(rest), calls, None if origin is None else a_count(origin))

    def _place(self, place: list[int] | None) -> Span | None:
        if not place:
            return None
        file, line, column, end_line, end_column = map(a_count, place[:5])
        return Span(self.files[file], line, column, end_line, end_column)


def _failure(found: Mapping[str, Any] | None, inner: tuple[Inner, ...]) -> Failure | None:
    if found is None:
        return None
    return checked(Failure(
        found["step"], found["message"], found.get("exception", ""), found.get("code", ""),
        found.get("within", ""), inner,
    ))  # fmt: skip


def _records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except RecursionError as error:
            raise TraceFormatError(f"damaged trace: record {number} nests too deeply") from error
        except ValueError as error:
            if number > 1 and not line.endswith("\n"):
                return  # the record that was being written when the process ended
            raise TraceFormatError(f"line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise TraceFormatError(f"line {number} is not an object")
        if _HALF.search(line) is not None:
            with _damage(number):  # half a character, but for a byte of a file name that is no text
                json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")
        yield record
