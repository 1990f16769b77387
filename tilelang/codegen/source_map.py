"""Which place in the user's Python does each line of generated source come from?

Each printed line holds one statement, so a line is enough of a position on this side. The first
span of a line is that of its statement; others are of loads and calls in it that were written
elsewhere. `calls` is the way from the kernel to inlined code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilelang_diagnostics.json_format import span_from_json, span_to_json
from tilelang_diagnostics.model import Frame, Span

# How `c_printer` declares a tile in dynamic shared memory, and one of its own.
_SHARED_TILE: Final = re.compile(
    r"^\s*(?:\S.*\*\s*(?:__restrict__ )?(\w+) = \([^)]*\*\)\(shared_memory"
    r"|__shared__ .*?\b(\w+)\[[^\]]*\];)"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of generated source. Lines of the frame around a kernel have no span."""

    text: str
    spans: tuple[Span, ...] = ()
    calls: tuple[Frame, ...] = ()
    # Whether the author wrote it, in CUDA.
    foreign: bool = False

    @property
    def span(self) -> Span | None:
        """The place of its statement."""
        return self.spans[0] if self.spans else None


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Lines of a generated file, numbered from 1."""

    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def at(self, number: int) -> Line | None:
        """Line `number`, or None past the end."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else None

    def lines_of(self, file: str, line: int) -> tuple[int, ...]:
        """Numbers of the generated lines that line `line` of `file` became."""
        return tuple(
            number
            for number, generated in enumerate(self.lines, 1)
            if any(s.file == file and s.line <= line <= s.end_line for s in generated.spans)
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Only lines that have a place: number, spans and calls."""
        return [
            {
                "line": number,
                "spans": [span_to_json(s) for s in line.spans],
                "calls": [
                    {"function": f.function, **span_to_json(f.span)} for f in line.calls
                ],
                **({"foreign": True} if line.foreign else {}),
            }
            for number, line in enumerate(self.lines, 1)
            if line.spans or line.foreign
        ]  # fmt: skip

    @staticmethod
    def from_json(text: str, rows: Iterable[dict[str, Any]]) -> SourceMap:
        """The map of `text` whose places are `rows`."""
        lines = [Line(part) for part in text.splitlines()]
        for row in rows:
            spans = tuple(span_from_json(s) for s in row["spans"])
            calls = tuple(Frame(f["function"], span_from_json(f)) for f in row["calls"])
            text_there = lines[row["line"] - 1].text
            lines[row["line"] - 1] = Line(text_there, spans, calls, row.get("foreign", False))
        return SourceMap(tuple(lines))


def with_line_directives(lines: Sequence[Line]) -> list[Line]:
    """`lines` with a `#line` before each statement whose Python line is another than the last."""
    out: list[Line] = []
    expected: tuple[str, int] | None = None
    for line in lines:
        # A directive between lines of the author's could stand inside a macro or a string.
        place = None if line.foreign else line.span
        if place is not None:
            if expected != (place.file, place.line):
                escaped = place.file.replace("\\", "\\\\").replace('"', '\\"')
                out.append(Line(f'#line {place.line} "{escaped}"', line.spans, line.calls))
            expected = (place.file, place.line + 1)
        elif expected is not None:
            expected = (expected[0], expected[1] + 1)
        out.append(line)
    return out


def shared_tiles(lines: Iterable[Line]) -> list[str]:
    """Names of the tiles in shared memory that generated lines declare."""
    matches = (_SHARED_TILE.match(line.text) for line in lines)
    return [m[1] or m[2] for m in matches if m is not None]
