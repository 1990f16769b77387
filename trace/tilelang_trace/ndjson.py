"""How is a trace kept in a file? One JSON object a line; a public format, 1.2.

    {"schema": "tilelang-trace", "major": 1, "minor": 2, "kernel": "main", "file": "gemm.py",
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
       "said": {"layout": "…", "versions": "3"}, "span": PLACE}]}
    {"record": "part", "name": "generate", "seconds": 0.3, "phase": "code", "position": 20,
     "resident": 0}
    {"record": "code", "kind": "source", "language": "cuda", "note": "", "lines": [LINE]}
    {"record": "resources", "kernel": "…", "threads": 128, "registers": 90, "spills": 0,
     "stack": 0, "shared": 49152, "blocks": 2, "counts": {"mma": 64}}
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

A reader accepts any minor version of the same major and skips records and fields it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tilelang_diagnostics import Diagnostic, Frame, Span, from_json, to_json
from tilelang_trace.model import (
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

SCHEMA = "tilelang-trace"
MAJOR, MINOR = 1, 2


class TraceFormatError(ValueError):
    """A file that is no trace, or one this version cannot read."""


class Writer:
    """Writes records as they come about; each is given to `sink` as a whole line."""

    def __init__(
        self, sink: Callable[[str], object], text_of: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._sink = sink
        self._text_of = text_of
        self._files: dict[str, int] = {}

    def header(self, trace: Trace, files: Iterable[str] = ()) -> None:
        """The first record, with what is known of the compilation at its start."""
        self._files = {name: n for n, name in enumerate(dict.fromkeys(files))}
        self._write({
            "schema": SCHEMA, "major": MAJOR, "minor": MINOR, "kernel": trace.kernel,
            "file": trace.file, "target": trace.target, "values": dict(trace.values),
            "files": list(self._files), "options": dict(trace.options), "version": trace.version,
        })  # fmt: skip

    def source(self, name: str, text: str | None) -> None:
        """The text of a file that spans point into."""
        number = self._files.setdefault(name, len(self._files))
        self._write({"record": "source", "file": number, "name": name, "text": text})

    def program(self, data: str) -> None:
        """What a replay starts from."""
        self._write({"record": "program", "data": data})

    def begin(self, name: str, depth: int = 0) -> None:
        """A pass that has begun, inside of `depth` others."""
        self._write({"record": "begin", "name": name, "depth": depth})

    def inner(self, inner: Inner, depth: int) -> None:
        """What has ended inside of `depth` others; what was inside of it is written already."""
        self._write({
            "record": "inner", "name": inner.name, "depth": depth, "seconds": inner.seconds,
            "start": inner.start, "resident": inner.resident,
            "lines": [self._line(line) for line in inner.lines],
        })  # fmt: skip

    def within(self, inner: Iterable[Inner], depth: int = 1) -> None:
        """All of a tree, as it would have been written while it ran."""
        for one in inner:
            self.within(one.inner, depth + 1)
            self.inner(one, depth)

    def step(self, step: Step) -> None:
        """The program after a pass."""
        self._write({
            "record": "step", "name": step.name, "reason": step.reason, "seconds": step.seconds,
            "phase": step.phase, "attempt": step.attempt, "resident": step.resident,
            "lines": [self._line(line) for line in step.lines],
            "decisions": [
                {"kind": d.kind, "text": d.text, "why": d.why, "span": self._place(d.span),
                 "rejected": [list(r) for r in d.rejected],
                 "places": [[self._place(span), text] for span, text in d.places]}
                for d in step.decisions
            ],
            "remarks": [to_json(d) for d in step.remarks],
            "symbols": [
                {"name": s.name, "scope": s.scope, "dtype": s.dtype, "shape": list(s.shape),
                 "said": dict(s.said), "span": self._place(s.span)}
                for s in step.symbols
            ],
        })  # fmt: skip

    def part(self, part: Part) -> None:
        """A part that has ended."""
        self._write({"record": "part", "name": part.name, "seconds": part.seconds,
                     "phase": part.phase, "position": part.position,
                     "resident": part.resident})  # fmt: skip

    def layout(self, shot: LayoutShot) -> None:
        """A layout that was chosen."""
        self._write({
            "record": "layout", "name": shot.name, "kind": shot.kind, "shape": list(shot.shape),
            "dtype": shot.dtype, "short": shot.short, "why": shot.why,
            "span": self._place(shot.span), "drawing": shot.drawing, "cost": shot.cost,
        })  # fmt: skip

    def code(self, code: Code) -> None:
        """The kernel in a language below the IR."""
        self._write({"record": "code", "kind": code.kind, "language": code.language,
                     "note": code.note, "lines": [self._line(x) for x in code.lines]})  # fmt: skip

    def resources(self, used: Resources) -> None:
        """What a kernel takes."""
        self._write({
            "record": "resources", "kernel": used.kernel, "threads": used.threads,
            "registers": used.registers, "spills": used.spills, "stack": used.stack,
            "shared": used.shared, "blocks": used.blocks, "counts": dict(used.counts),
        })  # fmt: skip

    def remark(self, found: Diagnostic) -> None:
        """What the compiler found worth telling."""
        self._write({"record": "remark", "diagnostic": to_json(found)})

    def end(self, failure: Failure | None) -> None:
        """The last record."""
        ended = None if failure is None else {
            "step": failure.step, "message": failure.message, "exception": failure.exception,
            "code": failure.code, "within": failure.within,
        }  # fmt: skip
        self._write({"record": "end", "failure": ended})

    def _line(self, line: Line) -> list[Any]:
        out = [line.text, *(self._place(line.span) or ())]
        more: dict[str, Any] = {}
        if line.calls:
            more["calls"] = [[f.function, *(self._place(f.span) or ())] for f in line.calls]
        if line.origin is not None:
            more["origin"] = line.origin
        return [*out, more] if more else out

    def _place(self, span: Span | None) -> list[int] | None:
        if span is None:
            return None
        if span.file not in self._files:
            self.source(span.file, self._text_of(span.file))
        number = self._files[span.file]
        return [number, span.line, span.column, span.end_line, span.end_column]

    def _write(self, record: Mapping[str, Any]) -> None:
        self._sink(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


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
    try:
        return _Reader(header).read(records)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, TraceFormatError):
            raise
        raise TraceFormatError(f"a damaged trace: {type(error).__name__}: {error}") from error


class _Reader:
    def __init__(self, header: Mapping[str, Any]) -> None:
        self.header = header
        self.files: dict[int, str] = dict(enumerate(header["files"]))
        self.sources: list[tuple[str, str]] = []
        self.steps: list[Step] = []
        self.parts: list[Part] = []
        self.codes: list[Code] = []
        self.resources: list[Resources] = []
        self.layouts: list[LayoutShot] = []
        self.remarks: list[Diagnostic] = []
        self.program = ""
        self.running: list[str] = []
        self._inner: list[tuple[int, Inner]] = []  # what waits for what is around it

    def read(self, records: Iterator[dict[str, Any]]) -> Trace:
        for record in records:
            if record.get("record") == "end":
                return self._trace(_failure(record["failure"], self._taken(1)))
            self._record(record)
        message = "the trace was cut off: the process ended while it was written"
        step, *within = self.running or ["emit"]
        return self._trace(Failure(step, message, within="/".join(within), inner=self._taken(1)))

    def _trace(self, failure: Failure | None) -> Trace:
        header = self.header
        return Trace(
            header["kernel"], header["file"], header["target"], tuple(self.steps),
            tuple(header["values"].items()), tuple(self.sources), tuple(self.remarks), failure,
            tuple(self.parts), tuple(self.codes), tuple(self.resources), tuple(self.layouts),
            tuple(header.get("options", {}).items()), header.get("version", ""), self.program,
        )  # fmt: skip

    def _record(self, record: Mapping[str, Any]) -> None:
        match record.get("record"):
            case "source":
                name = record.get("name", self.files.get(record["file"], ""))
                self.files[record["file"]] = name
                if record["text"] is not None:
                    self.sources.append((name, record["text"]))
            case "program":
                self.program = record["data"]
            case "begin":
                depth = record.get("depth", 0)
                self.running[depth:] = [record["name"]]
            case "inner":
                depth = record["depth"]
                del self.running[depth:]
                lines = tuple(self._line(x) for x in record["lines"])
                self._inner.append((depth, Inner(
                    record["name"], record["seconds"], record["start"], record["resident"], lines,
                    self._taken(depth + 1))))  # fmt: skip
            case "step":
                self.steps.append(self._step(record))
            case "part":
                self.parts.append(Part(
                    record["name"], record["seconds"], record["phase"], record["position"],
                    record.get("resident", 0), self._taken(1)))  # fmt: skip
            case "code":
                shown = tuple(self._line(x) for x in record["lines"])
                self.codes.append(Code(record["kind"], record["language"], shown, record["note"]))
            case "layout":
                self.layouts.append(LayoutShot(
                    record["name"], record["kind"], tuple(record["shape"]), record["dtype"],
                    record["short"], record["why"], self._place(record["span"]),
                    record["drawing"], record["cost"]))  # fmt: skip
            case "resources":
                self.resources.append(Resources(
                    record["kernel"], record["threads"], record["registers"], record["spills"],
                    record["stack"], record["shared"], record["blocks"],
                    tuple(record["counts"].items())))  # fmt: skip
            case "remark":
                self.remarks.append(from_json(record["diagnostic"]))

    def _step(self, record: Mapping[str, Any]) -> Step:
        decisions = tuple(
            Decision(
                d["kind"], d["text"], d["why"], self._place(d["span"]),
                tuple((way, why) for way, why in d.get("rejected", ())),
                tuple((span, text) for place, text in d.get("places", ())
                      if (span := self._place(place)) is not None),
            )
            for d in record.get("decisions", ())
        )  # fmt: skip
        return Step(
            record["name"], tuple(self._line(x) for x in record["lines"]), record["seconds"],
            record["reason"], record.get("phase", ""), record.get("attempt", 0),
            record.get("resident", 0), decisions,
            tuple(from_json(d) for d in record.get("remarks", ())),
            tuple(
                Symbol(s["name"], s["scope"], s["dtype"], tuple(s["shape"]),
                       tuple(s["said"].items()), self._place(s["span"]))
                for s in record.get("symbols", ())
            ),
            self._taken(1),
        )  # fmt: skip

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
        more = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        calls = tuple(
            Frame(name, span) for name, *place in more.get("calls", ())
            if (span := self._place(place)) is not None
        )  # fmt: skip
        return Line(text, self._place(rest), calls, more.get("origin"))

    def _place(self, place: list[int] | None) -> Span | None:
        return Span(self.files[place[0]], *place[1:5]) if place else None


def _failure(found: Mapping[str, Any] | None, inner: tuple[Inner, ...]) -> Failure | None:
    if found is None:
        return None
    return Failure(
        found["step"], found["message"], found.get("exception", ""), found.get("code", ""),
        found.get("within", ""), inner,
    )  # fmt: skip


def _records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if number > 1 and not line.endswith("\n"):
                return  # the record that was being written when the process ended
            raise TraceFormatError(f"line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise TraceFormatError(f"line {number} is not an object")
        yield record
