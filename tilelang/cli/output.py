"""How are diagnostics and facts shown on a terminal, in a pipe, or in a log?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from tilelang_diagnostics import SourceMap, render_ansi, render_text
from tilelang_diagnostics.model import Diagnostic


def show(
    diagnostics: Iterable[Diagnostic],
    sources: SourceMap | None = None,
    stream: TextIO | None = None,
) -> None:
    """Render `diagnostics` on standard error: coloured on a terminal, plain elsewhere."""
    out = stream or sys.stderr
    found = tuple(diagnostics)
    if not found:
        return
    render = render_ansi if out.isatty() else render_text
    out.write(render(found, sources or SourceMap(), terminal_width(), summary=len(found) > 1))
    out.flush()


def terminal_width() -> int:
    """The columns there are to fill."""
    return min(100, shutil.get_terminal_size((100, 24)).columns)


def table(rows: Sequence[tuple[str, str]], width: int = 0) -> None:
    """Names and facts, aligned, on standard output; a fact may have several lines."""
    width = max(width, *(len(name) for name, _ in rows)) if rows else width
    for name, fact in rows:
        first, *rest = fact.splitlines() or [""]
        print(f"  {name:<{width}}  {first}".rstrip())
        for line in rest:
            print(f"  {'':<{width}}  {line}".rstrip())
