"""How are findings written: for people at a terminal, or as one JSON document.

The JSON document is a public format; fields may be added within a major version:

    {"schema": "tilelang-lint", "major": 1, "minor": 0, "files": 12,
     "diagnostics": [DIAGNOSTIC, ...]}          (see tilelang_diagnostics.json_format)
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tilelang_diagnostics import (
    Diagnostic,
    SourceMap,
    render_ansi,
    render_text,
    summary_line,
    to_json,
)

SCHEMA = {"schema": "tilelang-lint", "major": 1, "minor": 0}


def as_text(
    diagnostics: Sequence[Diagnostic], sources: SourceMap, files: int, width: int, colour: bool
) -> str:
    """Excerpts with carets, then one line that sums up."""
    render = render_ansi if colour else render_text
    counted = f"{files} file{'' if files == 1 else 's'}"
    excerpts = render(diagnostics, sources, width, summary=False)
    return f"{excerpts}{summary_line(diagnostics)} in {counted}\n"


def as_json(diagnostics: Sequence[Diagnostic], files: int) -> str:
    """The JSON document."""
    document = {**SCHEMA, "files": files, "diagnostics": [to_json(d) for d in diagnostics]}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
