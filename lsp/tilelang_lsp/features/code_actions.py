"""textDocument/codeAction: the fixes of the findings in a range, all of a file at once, and
switching findings off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilelang_diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Severity,
    Span,
    find_code,
)
from tilelang_lint.fixing import overlap
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.diagnostics import EditorDiagnostic, editor_diagnostic
from tilelang_lsp.features.more_fixes import more_fixes
from tilelang_lsp.features.suppressions import in_the_file, in_the_project, on_the_line
from tilelang_lsp.unanswered import NOT_ANALYSED

QUICK, FIX_ALL = "quickfix", "source.fixAll.tilelang"
# What a comment would not switch off: it is said of comments for us, or of no reading.
_STAYS = frozenset({"TL403", "TL725", "TL737", NOT_ANALYSED})


@dataclass(frozen=True, slots=True)
class Action:
    """Edits under a title. A quick fix is for a finding, and may be the obvious one."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool
    resolves: EditorDiagnostic | None
    kind: str = QUICK


def code_actions(request: Request) -> tuple[Action, ...]:
    """The actions for every finding that touches the range, then rewrites that fit the place."""
    from tilelang_lsp.features.refactorings import refactorings

    return tuple(_wanted(request, (*_quick(request), *refactorings(request), *_all(request))))


FEATURE = Feature("textDocument/codeAction", code_actions, "current")


def _wanted(request: Request, actions: Iterable[Action]) -> Iterator[Action]:
    """The kinds the editor asked for; without asking, all but those of a whole file."""
    for action in actions:
        if not request.only:
            if action.kind != FIX_ALL:
                yield action
        elif any(f"{action.kind}.".startswith(f"{kind}.") or not kind for kind in request.only):
            yield action


def _quick(request: Request) -> Iterator[Action]:
    findings = request.findings or request.analysis.diagnostics
    touched = [d for d in findings if _touches(request, d.span)]
    for diagnostic in touched:
        yield from _fixes(request, diagnostic, findings)
    for diagnostic in touched:
        yield from _switches(request, diagnostic)


def fixes_of(request: Request, diagnostic: Diagnostic) -> tuple[Fix, ...]:
    """The compiler's fixes of a finding, then those that are seen in the text."""
    return (*diagnostic.fixes, *more_fixes(request, diagnostic))


def _fixes(
    request: Request, diagnostic: Diagnostic, findings: Iterable[Diagnostic]
) -> Iterator[Action]:
    shown = editor_diagnostic(diagnostic, request.analysis.path)
    fixes = fixes_of(request, diagnostic)
    for number, fix in enumerate(fixes):
        only = number == 0 and (fix.applicability is Applicability.SAFE or len(fixes) == 1)
        yield Action(fix.title, fix.edits, only, shown)
    same = [d for d in findings if d.code == diagnostic.code]
    edits = _together(request, same)
    if len(same) > 1 and len(edits) > 1:
        row = find_code(diagnostic.code)
        name = row.name if row is not None else diagnostic.code
        yield Action(f"fix all {name} of this file", edits, False, shown)


def _all(request: Request) -> Iterator[Action]:
    edits = _together(request, request.findings or request.analysis.diagnostics)
    if edits:
        yield Action("fix all that can be fixed safely", edits, False, None, FIX_ALL)


def _together(request: Request, findings: Iterable[Diagnostic]) -> tuple[Edit, ...]:
    """The safe fixes of findings, those of them that do not touch each other."""
    kept: dict[Edit, None] = {}
    for diagnostic in findings:
        safe = [
            f for f in fixes_of(request, diagnostic) if f.applicability is Applicability.SAFE
        ]  # fmt: skip
        edits = safe[0].edits if safe else ()
        if all(e in kept or not any(overlap(e.span, k.span) for k in kept) for e in edits):
            kept.update(dict.fromkeys(edits))
    return tuple(kept)


def _switches(request: Request, diagnostic: Diagnostic) -> Iterator[Action]:
    """Switching a finding off. An error would stop the compilation all the same, so hiding it
    helps nobody."""
    row = find_code(diagnostic.code)
    span = diagnostic.span
    if row is None or diagnostic.severity is Severity.ERROR or span is None:
        return
    if row.code in _STAYS:
        return
    shown = editor_diagnostic(diagnostic, request.analysis.path)
    edit = on_the_line(request.text, diagnostic, row.name)
    if edit is not None:
        yield Action(f"Ignore {row.name} on this line", (edit,), False, shown)
    edit = in_the_file(request.text, span.file, row.name)
    yield Action(f"Ignore {row.name} in this file", (edit,), False, shown)
    if request.project is not None:
        file, text = request.project
        edit = in_the_project(text, file, row.name)
        if edit is not None:
            yield Action(f"Ignore {row.name} in this project", (edit,), False, shown)


def _touches(request: Request, span: Span | None) -> bool:
    if span is None or span.file != request.analysis.path:
        return False
    start, end = (request.line, request.column), (request.end_line, request.end_column)
    return (span.line, span.column) <= end and start <= (span.end_line, span.end_column)
