"""Kernels whose text carries «marks» around the place that a finding points at."""

from __future__ import annotations

from tests.support.markers import diagnostics_of, kernel_text
from tilelang_diagnostics import SourceMap, render_text
from tilelang_diagnostics.model import Diagnostic


def check_marked(
    marked: str, says: str, target: str | None, besides: tuple[str, ...] = ()
) -> tuple[Diagnostic, str]:
    """Assert that a kernel gives one finding, at the marks, whose text begins as `says`; codes in
    `besides` do not count. Gives the finding, and everything that was said as text."""
    full = kernel_text(marked)
    text = plain(full)
    found = diagnostics_of(text, target=target)
    shown = render_text(found, SourceMap({"kernel.py": text}))
    counted = [d for d in found if d.code not in besides]
    assert len(counted) == 1, shown or "nothing was said"
    (one,) = counted
    assert f"{one.severity.value}[{one.code}] {one.message}".startswith(says), shown
    span = one.span
    assert span is not None, shown
    assert (span.line, span.column, span.end_line, span.end_column) == marks(full), shown
    return one, shown


def plain(text: str) -> str:
    """The kernel without its marks."""
    return text.replace("«", "").replace("»", "")


def marks(text: str) -> tuple[int, int, int, int]:
    """Where the marked text of a file lies, once the marks are gone."""
    before, rest = text.split("«")
    inside = rest.split("»")[0]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    if "\n" not in inside:
        return line, column, line, column + len(inside)
    return line, column, line + inside.count("\n"), len(inside) - inside.rfind("\n")
