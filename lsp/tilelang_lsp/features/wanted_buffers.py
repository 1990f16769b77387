"""Which names fit an argument best? Tiles of the memory that the operand lies in come first.

T.gemm(|)      shared tiles, then fragments; the third operand is a fragment
T.copy(A, |)   what A is not in: a tile for a tensor, a tensor for a tile
T.clear(|)     fragments, then shared tiles
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import OpenCall
from tilelang_lsp.features.base import Request
from tilelang_lsp.model import Symbol

_FIRST, _SECOND, _BUFFER, _ANY = -2, -1, 0, 1
# For a function, the memories of each operand, the best first; the last row serves all others.
_SCOPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "gemm": (("shared", "fragment"), ("shared", "fragment"), ("fragment",)),
    "clear": (("fragment", "shared", "local"),),
    "fill": (("fragment", "shared", "local"), ()),
    "reshape": (("shared", "fragment"), ()),
    "tma_copy": (("global", "shared"), ("shared", "global")),
    "async_copy": (("global",), ("shared",)),
    "finalize_reducer": (("local", "fragment"), ("fragment", "shared")),
    "atomic_add": (("global", "shared"), ("fragment", "shared")),
    "annotate_layout": (("shared", "fragment"),),
}
_REDUCED = (("fragment", "shared"), ("fragment", "shared"), ())


def wants(request: Request, call: OpenCall | None) -> Callable[[Symbol], int]:
    """How well a name fits the position: its place in the order of proposals."""
    entry = None if call is None else request.catalogue.find(request.analysis, call.name)
    if call is None or entry is None or entry.kind not in ("tile", "scalar", "annotation", "alloc"):
        return lambda symbol: 0
    position = call.argument
    if call.keyword is not None:
        names = [p.name for p in entry.parameters or ()]
        position = names.index(call.keyword) if call.keyword in names else 99
    scopes = _copied(request, position) if entry.name == "copy" else _wanted(entry.name, position)
    if not scopes:
        return lambda symbol: 0

    def order(symbol: Symbol) -> int:
        scope = scope_of(symbol)
        if scope in scopes:
            return _FIRST if scope == scopes[0] else _SECOND
        return _BUFFER if scope else _ANY

    return order


def scope_of(symbol: Symbol) -> str:
    """The memory a tile lies in, empty for what is none."""
    if not symbol.detail.startswith("("):
        return ""
    return symbol.detail.rpartition(" ")[2].partition(".")[0]


def _wanted(function: str, position: int) -> tuple[str, ...]:
    rows = _REDUCED if function.startswith(("reduce", "cum")) else _SCOPES.get(function, ())
    return () if not rows else rows[min(position, len(rows) - 1)]


def _copied(request: Request, position: int) -> tuple[str, ...]:
    """The first operand is most often a tensor; the second lies where the first does not."""
    if position == 0:
        return ("global", "shared", "fragment")
    line = split_lines(request.text)[request.line - 1][: request.column - 1]
    source = re.search(r"copy\(\s*(?:src\s*=\s*)?(\w+)", line)
    named = [s for s in request.analysis.symbols if source is not None and s.name == source[1]]
    if not named or scope_of(named[-1]) == "global":
        return ("shared", "fragment")
    return ("global", "fragment", "shared") if scope_of(named[-1]) else ()
