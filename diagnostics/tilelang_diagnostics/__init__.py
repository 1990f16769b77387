"""Diagnostics as data: what one is, which exist, and how they are shown, sent and raised."""

from tilelang_diagnostics.codes import AREAS, CATALOGUE, Code, code_of, diagnose, find_code
from tilelang_diagnostics.errors import CompileError, error_for, failure, raise_for
from tilelang_diagnostics.fixes import OverlappingEdits, apply_edits
from tilelang_diagnostics.grammar import counted, with_article
from tilelang_diagnostics.json_format import from_json, from_json_lines, to_json, to_json_lines
from tilelang_diagnostics.model import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Label,
    Severity,
    Span,
    exit_status,
    has_errors,
)
from tilelang_diagnostics.pages import Example, Page, explain, explain_rich, page
from tilelang_diagnostics.render import render_ansi, render_rich, render_text, summary_line
from tilelang_diagnostics.sources import SourceMap
from tilelang_diagnostics.suggest import did_you_mean, suggest

__all__ = [
    "AREAS",
    "CATALOGUE",
    "Applicability",
    "Code",
    "CompileError",
    "Diagnostic",
    "Edit",
    "Example",
    "Fix",
    "Frame",
    "Label",
    "OverlappingEdits",
    "Page",
    "Severity",
    "SourceMap",
    "Span",
    "apply_edits",
    "code_of",
    "counted",
    "diagnose",
    "did_you_mean",
    "error_for",
    "exit_status",
    "explain",
    "explain_rich",
    "failure",
    "find_code",
    "from_json",
    "from_json_lines",
    "has_errors",
    "page",
    "raise_for",
    "render_ansi",
    "render_rich",
    "render_text",
    "suggest",
    "summary_line",
    "to_json",
    "to_json_lines",
    "with_article",
]
