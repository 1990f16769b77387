"""Which functions are around a position, and which does a call name: one of the language, or one of
the files of the workspace?"""

from __future__ import annotations

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.crossing import Crossing, Meaning, ModuleFile
from tilelang_lsp.declared import Declared, declaration
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.model import MODULE, Entry


def called(request: Request, name: str) -> Entry | None:
    """The function that `name`, which may be dotted, means on the line of the position."""
    entry = request.catalogue.find(request.analysis, name)
    if entry is not None:
        return entry
    across = crossing(request)
    meant = across.named(name, request.line)
    found = None if meant is None else declared(across, meant)
    return None if found is None else found.entry


def declared(across: Crossing, meant: Meaning) -> Declared | None:
    """What the file that binds a name says of it."""
    return None if isinstance(meant, ModuleFile) else declaration(across.text(meant.path), meant)


def functions_around(request: Request) -> tuple[str, ...]:
    """Names of the functions that what is written at the position belongs to, outermost first.

    Below the last line of one, that is told by how far it is indented.
    """
    rows = split_lines(request.text)
    row = rows[request.line - 1][: request.column - 1]
    indent = len(row) - len(row.lstrip())

    def goes_on(whole: Span) -> bool:
        added = rows[whole.end_line : request.line - 1]
        margin = whole.column - 1
        return indent > margin and all(
            not r.strip() or len(r) - len(r.lstrip()) > margin for r in added
        )

    found = [
        node.name for top in request.analysis.outline for node in top.walk()
        if node.kind in ("kernel", "function", "macro") and node.whole.line <= request.line
        and (request.line <= node.whole.end_line or goes_on(node.whole))
    ]  # fmt: skip
    return (MODULE, *found)
