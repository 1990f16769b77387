"""textDocument/publishDiagnostics: the compiler's findings as an editor shows them.

An editor shows one message for one range, so label, notes and help follow the message, and what
lies elsewhere becomes related places. A finding inside a function of another file is shown where
this file calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from tilelang_diagnostics import Diagnostic, Severity, Span

DEPRECATED = frozenset({"TL118"})
# What does nothing: an editor draws it faint.
UNNECESSARY = frozenset({"TL149", "TL186", "TL737"})


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that takes part."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class EditorDiagnostic:
    """One squiggle: `page` is the file that explains the code, empty when there is none."""

    span: Span
    severity: Severity
    code: str
    message: str
    related: tuple[Related, ...]
    page: str
    deprecated: bool = False
    unnecessary: bool = False


def editor_diagnostic(diagnostic: Diagnostic, path: str) -> EditorDiagnostic:
    """One finding, placed in the file `path`."""
    span, related = _place(diagnostic, path)
    related += [Related(label.span, label.text) for label in diagnostic.labels]
    related += [
        Related(f.span, f"in `{f.function}`, called here")
        for f in diagnostic.calls if f.span != span
    ]  # fmt: skip
    return EditorDiagnostic(
        span, diagnostic.severity, diagnostic.code, _message(diagnostic), tuple(related),
        page_file(diagnostic.code), diagnostic.code in DEPRECATED, diagnostic.code in UNNECESSARY,
    )  # fmt: skip


def page_file(code: str) -> str:
    """The file of a code's page, empty while it has none."""
    page = files("tilelang_diagnostics").joinpath("pages", f"{code}.md")
    return str(page) if page.is_file() else ""


def _place(diagnostic: Diagnostic, path: str) -> tuple[Span, list[Related]]:
    """Where this file shows the finding, and the real place when that is elsewhere."""
    span = diagnostic.span
    if span is None:
        return Span(path, 1, 1, 1, 1), []
    if span.file == path:
        return span, []
    here = [f.span for f in diagnostic.calls if f.span.file == path]
    shown = here[-1] if here else Span(path, 1, 1, 1, 1)
    return shown, [Related(span, diagnostic.label or diagnostic.message)]


def line_here(diagnostic: Diagnostic, path: str) -> int:
    """The line of the file `path` that a finding is shown in; 0 for one that has no place."""
    return 0 if diagnostic.span is None else _place(diagnostic, path)[0].line


def _message(diagnostic: Diagnostic) -> str:
    lines = [diagnostic.message]
    if diagnostic.label and diagnostic.label not in diagnostic.message:
        lines.append(diagnostic.label)
    lines += [f"note: {note}" for note in diagnostic.notes]
    if diagnostic.help is not None:
        lines.append(f"help: {diagnostic.help}")
    return "\n".join(lines)
