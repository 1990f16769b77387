"""textDocument/selectionRange: from the name under the cursor outwards, as the syntax nests."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import dotted_at
from tilelang_lsp.definitions import first_line
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.recovery import recover


@dataclass(frozen=True, slots=True)
class Nested:
    """Spans around one position, the innermost first."""

    spans: tuple[Span, ...]


def selection_ranges(request: Request) -> tuple[Nested, ...]:
    """For each position asked about."""
    readable = recover(request.text)
    lines = split_lines(request.text)
    found = []
    for line, column in request.positions:
        spans: dict[Span, None] = {}
        if readable is not None:
            for node in ast.walk(readable.tree):
                span = _span(node, lines, request.analysis.path)
                if span is not None and (span.line, span.column) <= (line, column) <= (
                    span.end_line, span.end_column
                ):  # fmt: skip
                    spans[span] = None
        word = dotted_at(request.text, line, column)
        if word is not None:
            last = word.name.rpartition(".")[2]
            start = word.end_column - len(last)
            spans[Span(request.analysis.path, line, start, line, word.end_column)] = None
        end = len(lines[-1]) + 1 if lines else 1
        spans[Span(request.analysis.path, 1, 1, max(len(lines), 1), end)] = None
        found.append(Nested(_chain(list(spans))))
    return tuple(found)


FEATURE = Feature("textDocument/selectionRange", selection_ranges, "newest")


def _chain(spans: list[Span]) -> tuple[Span, ...]:
    """Each span inside the next; what overlaps without nesting is left out."""
    ordered = sorted(spans, key=lambda s: (s.end_line - s.line, s.end_column - s.column))
    chain: list[Span] = []
    for span in ordered:
        if not chain or _inside(chain[-1], span):
            chain.append(span)
    return tuple(chain)


def _inside(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (
        inner.end_line, inner.end_column
    ) <= (outer.end_line, outer.end_column)  # fmt: skip


def _span(node: ast.AST, lines: tuple[str, ...], path: str) -> Span | None:
    if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
        return None
    line = first_line(node) if isinstance(node, ast.stmt) else node.lineno
    end = node.end_lineno or node.lineno
    return Span(path, line, _column(lines, line, node.col_offset), end,
                _column(lines, end, node.end_col_offset or 0))  # fmt: skip


def _column(lines: tuple[str, ...], line: int, offset: int) -> int:
    """1-based code points of an offset in UTF-8 bytes."""
    text = lines[line - 1] if line <= len(lines) else ""
    if text.isascii():
        return offset + 1
    return len(text.encode()[:offset].decode(errors="ignore")) + 1
