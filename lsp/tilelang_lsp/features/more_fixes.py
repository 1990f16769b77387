"""The fixes that are read off the text (`tilelang_lint.text_fixes`), for what the editor holds."""

from __future__ import annotations

import re

from tilelang_diagnostics import Diagnostic, Fix
from tilelang_lint.text_fixes import has_text_fixes, text_fixes
from tilelang_lint.written import Tile, Written
from tilelang_lsp.features.base import Request
from tilelang_lsp.model import Symbol
from tilelang_lsp.recovery import recover


def more_fixes(request: Request, found: Diagnostic) -> tuple[Fix, ...]:
    """The fixes for a finding in the file asked about, the most likely first."""
    if not has_text_fixes(found, request.analysis.path):
        return ()
    written = written_of(request, broken=False)
    return () if written is None else text_fixes(written, found)


def written_of(request: Request, broken: bool = True) -> Written | None:
    """The text of a request, None for one that cannot be read, or only in part if not `broken`."""
    readable = recover(request.text)
    if readable is None or (readable.broken and not broken):
        return None
    alias = min(request.analysis.aliases, key=len, default="T")
    tiles = tuple(map(tile_of, request.analysis.symbols))
    return Written(request.text, request.analysis.path, readable.tree, alias, tiles)


def tile_of(symbol: Symbol) -> Tile:
    """A symbol as fixes see it."""
    bits = re.search(r"\) [a-z]+(\d+)", symbol.detail)
    return Tile(symbol.name, symbol.span.line, None if bits is None else int(bits[1]))
