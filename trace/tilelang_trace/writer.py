"""How does a trace get into a file? Record by record, as they come about: see `ndjson`."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tilelang_diagnostics import Diagnostic, Span, to_json
from tilelang_trace.did import did
from tilelang_trace.model import (
    Binary,
    Code,
    Failure,
    Inner,
    LayoutShot,
    Line,
    Part,
    Resources,
    Step,
    Trace,
)
from tilelang_trace.structure import Structure, structure

SCHEMA: Final = "tilelang-trace"
MAJOR, MINOR = 1, 3


class Writer:
    """Writes records as they come about; each is given to `sink` as a whole line."""

    def __init__(
        self, sink: Callable[[str], object], text_of: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._sink = sink
        self._text_of = text_of
        self._files: dict[str, int] = {}
        self._drawings: dict[str, int] = {}
        self._layouts = 0
        self._before: Step | None = None

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
        """The program after a pass, and what became of that before it."""
        before, self._before = self._before, step
        follows = before is not None and before.attempt == step.attempt
        found = structure(before, step) if before is not None and follows else None
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
            "did": did(step, found),
            **({} if found is None else {"changes": _changes(found)}),
        })  # fmt: skip

    def part(self, part: Part) -> None:
        """A part that has ended."""
        self._write({"record": "part", "name": part.name, "seconds": part.seconds,
                     "phase": part.phase, "position": part.position,
                     "resident": part.resident})  # fmt: skip

    def layout(self, shot: LayoutShot) -> None:
        """A layout that was chosen; a drawing is written once."""
        like = self._drawings.setdefault(shot.drawing, self._layouts)
        again = {"like": like} if shot.drawing and like != self._layouts else {}
        self._layouts += 1
        self._write({
            "record": "layout", "name": shot.name, "kind": shot.kind, "shape": list(shot.shape),
            "dtype": shot.dtype, "short": shot.short, "why": shot.why,
            "span": self._place(shot.span), "drawing": "" if again else shot.drawing,
            "cost": shot.cost, **again,
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

    def binary(self, binary: Binary) -> None:
        """What machine code is shown from."""
        data = base64.b85encode(zlib.compress(binary.data)).decode("ascii")
        self._write({"record": "binary", "file": binary.file, "data": data})

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


def _changes(found: Structure) -> dict[str, Any]:
    """What is not as it was, by lines from 1; those that follow each other on both sides as one."""
    fates: list[list[Any]] = []
    for match in found.matches:
        if match.fate == "kept":
            continue
        old = None if match.old is None else match.old + 1
        new = None if match.new is None else match.new + 1
        last = fates[-1] if fates else None
        if last is not None and last[0] == match.fate and last[1:3] == [
            old and old - last[3], new and new - last[3],
        ]:  # fmt: skip
            last[3] += 1
        else:
            fates.append([match.fate, old, new, 1])
    bodies = [
        {"head": x.head, "removed": x.is_removed, "line": x.at + 1, "lines": x.lines}
        for x in found.bodies
    ]
    return {"fates": fates, "bodies": bodies}
