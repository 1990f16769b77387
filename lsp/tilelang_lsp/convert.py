"""Where are our places in LSP terms? Lines from 0, columns in UTF-16 units or what was agreed on.

Ours are 1-based and count code points. A `Converter` knows the text of the documents it converts
positions of; a notebook is one text of ours, and a document for each cell of the editor's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types as lsp

from tilelang_diagnostics import Span
from tilelang_lsp.addresses import uri_of
from tilelang_lsp.texts import characters, units_of


def asked_range(params: Any) -> lsp.Range:
    """The place a request is about, whichever of the request types it is."""
    if hasattr(params, "range"):
        found: lsp.Range = params.range
        return found
    if hasattr(params, "position"):
        return lsp.Range(params.position, params.position)
    if getattr(params, "positions", None):
        return lsp.Range(params.positions[0], params.positions[0])
    start = lsp.Position(0, 0)
    return lsp.Range(start, start)


def include_declaration(params: Any) -> bool:
    """Whether a references request wants the binding too."""
    context = getattr(params, "context", None)
    return bool(getattr(context, "include_declaration", True))


def kinds_asked_for(params: Any) -> tuple[str, ...]:
    """The kinds of code actions a request is restricted to, empty where to none."""
    only = getattr(getattr(params, "context", None), "only", None)
    return tuple(str(getattr(kind, "value", kind)) for kind in only or ())


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a notebook: their addresses, and the line of the whole text each begins at."""

    uris: tuple[str, ...]
    starts: tuple[int, ...]  # 1-based, ascending

    def at(self, line: int) -> tuple[str, int]:
        """The cell that holds a line, and the line before its first."""
        index = max(bisect_right(self.starts, line) - 1, 0)
        return self.uris[index], self.starts[index] - 1

    def lines(self, uri: str) -> tuple[int, int | None]:
        """The line before the first of a cell, and its last; None for the end of the text."""
        index = self.uris.index(uri)
        after = self.starts[index + 1 : index + 2]
        return self.starts[index] - 1, after[0] - 1 if after else None


@dataclass(frozen=True, slots=True)
class Converter:
    """Converts for one document. `lines_of` gives the lines of any file, empty when unknown;
    `opened` are the addresses of all open files, and their cells."""

    uri: str
    path: str
    version: int
    lines_of: Callable[[str], Sequence[str]]
    encoding: str = "utf-16"
    cells: Cells | None = None
    opened: Mapping[str, tuple[str, Cells | None]] = field(default_factory=dict)

    # From the editor

    def position(self, position: lsp.Position) -> tuple[int, int]:
        """(line, column) of ours; positions behind the end of a line are moved to its end."""
        lines = self.lines_of(self.path)
        first, last = (0, None) if self.cells is None else self.cells.lines(self.uri)
        end = len(lines) if last is None else last
        row = position.line + first
        if row >= end:
            return max(end, 1), len(lines[end - 1]) + 1 if lines else 1
        return row + 1, characters(lines[row], position.character, self.encoding) + 1

    # To the editor

    def place(self, file: str, line: int, column: int) -> lsp.Position:
        """The position of a line and column of a file."""
        return lsp.Position(*self.numbers(file, line, column))

    def numbers(self, file: str, line: int, column: int) -> tuple[int, int]:
        """The same as line and character."""
        lines = self.lines_of(file)
        text = lines[line - 1][: column - 1] if line <= len(lines) else " " * (column - 1)
        row = line - 1
        cells = self._cells(file)
        if cells is not None:
            row -= cells.at(line)[1]
        return max(row, 0), self.units(text)

    def units(self, text: str) -> int:
        """How long a text is to the editor."""
        if text.isascii():
            return len(text)
        return sum(units_of(c, self.encoding) for c in text)

    def range(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return lsp.Range(
            self.place(span.file, span.line, span.column),
            self.place(span.file, span.end_line, span.end_column),
        )

    def uri_of(self, span: Span) -> str:
        """The document that a span stands in."""
        cells = self._cells(span.file)
        if cells is not None:
            return cells.at(span.line)[0]
        if span.file == self.path:
            return self.uri
        opened = self.opened.get(span.file)
        return opened[0] if opened is not None else uri_of(span.file)

    def _cells(self, file: str) -> Cells | None:
        """The cells of a notebook that is open."""
        return self.cells if file == self.path else self.opened.get(file, ("", None))[1]

    def location(self, span: Span) -> lsp.Location:
        """The place of a span in any file."""
        return lsp.Location(self.uri_of(span), self.range(span))

    def is_here(self, line: int) -> bool:
        """Whether a line of the text is in the document asked about."""
        return self.cells is None or self.cells.at(line)[0] == self.uri
