"""textDocument/codeAction: the fixes of the findings in a range, and switching one off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Severity,
    Span,
    find_code,
)
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.diagnostics import EditorDiagnostic, editor_diagnostic


@dataclass(frozen=True, slots=True)
class Action:
    """Edits under a title. A quick fix is for a finding, and may be the obvious one."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool
    resolves: EditorDiagnostic | None
    kind: str = "quickfix"


def code_actions(request: Request) -> tuple[Action, ...]:
    """The actions for every finding that touches the range, then rewrites that fit the place."""
    from tilelang_lsp.features.refactorings import refactorings

    found = tuple(
        action
        for diagnostic in request.findings or request.analysis.diagnostics
        if _touches(request, diagnostic.span)
        for action in _actions(request, diagnostic)
    )
    return (*found, *refactorings(request))


FEATURE = Feature("textDocument/codeAction", code_actions, "current")


def _actions(request: Request, diagnostic: Diagnostic) -> Iterator[Action]:
    shown = editor_diagnostic(diagnostic, request.analysis.path)
    for fix in diagnostic.fixes:
        safe = fix.applicability is Applicability.SAFE
        yield Action(fix.title, fix.edits, safe, shown)
    row = find_code(diagnostic.code)
    # An error would stop the compilation all the same, so hiding it helps nobody.
    if row is not None and diagnostic.severity is not Severity.ERROR and diagnostic.span:
        edit = _comment(request.text, diagnostic.span, row.name)
        yield Action(f"Ignore {row.name} on this line", (edit,), False, shown)


def _comment(text: str, span: Span, name: str) -> Edit:
    """A suppression comment at the end of the line where the finding ends."""
    line = split_lines(text)[span.end_line - 1]
    end = len(line.rstrip()) + 1
    place = Span(span.file, span.end_line, end, span.end_line, len(line) + 1)
    return Edit(place, f"  # tilelang: ignore[{name}]")


def _touches(request: Request, span: Span | None) -> bool:
    if span is None or span.file != request.analysis.path:
        return False
    start, end = (request.line, request.column), (request.end_line, request.end_column)
    return (span.line, span.column) <= end and start <= (span.end_line, span.end_column)
