"""textDocument/semanticTokens: which names are tiles, dims, macros, and which the language.

Types and modifiers are those of the protocol, so that every theme has colours for them: a buffer is
a variable with its memory scope as modifier, a compile-time value an enum member, a run-time
dimension a type parameter, a name of the language a function, type or macro.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import code_only
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import Symbol

TYPES: Final = (
    "variable", "parameter", "function", "macro", "type", "enumMember", "typeParameter", "property",
)  # fmt: skip
MODIFIERS: Final = (
    "declaration", "readonly", "global", "shared", "fragment", "local", "defaultLibrary",
)  # fmt: skip
_OF_SYMBOL: Final = {
    "parameter": "parameter", "buffer": "variable", "variable": "variable", "loop": "variable",
    "block": "variable", "constant": "enumMember", "dim": "typeParameter", "function": "function",
}  # fmt: skip
_OF_ENTRY: Final = {"dtype": "type", "type": "type", "constant": "enumMember"}
_SCOPES: Final = ("global", "shared", "fragment", "local")


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """A name on one line; `kind` and `modifiers` are names of `TYPES` and `MODIFIERS`."""

    line: int
    column: int
    length: int
    kind: str
    modifiers: tuple[str, ...] = ()


def semantic_tokens(request: Request) -> tuple[Token, ...]:
    """The tokens in order, none of which overlap."""
    found: dict[tuple[int, int], Token] = {}
    for symbol in request.analysis.symbols:
        kind = _OF_SYMBOL.get(symbol.kind)
        if kind is None:
            continue
        if symbol.kind == "function" and symbol.name in _macros(request):
            kind = "macro"
        said = _modifiers(symbol)
        for span in (symbol.span, *symbol.uses):
            if span.file != request.analysis.path or span.line != span.end_line:
                continue
            first = ("declaration",) if span == symbol.span else ()
            length = span.end_column - span.column
            token = Token(span.line, span.column, length, kind, (*first, *said))
            found.setdefault((span.line, span.column), token)
    for token in _language(request):
        found.setdefault((token.line, token.column), token)
    last = len(split_lines(request.text))
    return tuple(t for t in sorted(found.values()) if t.length > 0 and t.line <= last)


def tokens_of_lines(request: Request) -> tuple[Token, ...]:
    """Those of the lines that are asked about."""
    lines = range(request.line, request.end_line + 1)
    return tuple(t for t in semantic_tokens(request) if t.line in lines)


FEATURE = Feature("textDocument/semanticTokens/full", semantic_tokens, "current")
OF_LINES = Feature("textDocument/semanticTokens/range", tokens_of_lines, "current")


def _macros(request: Request) -> frozenset[str]:
    around = (n for top in request.analysis.outline for n in top.walk())
    return frozenset(n.name for n in around if n.kind == "macro")


def _modifiers(symbol: Symbol) -> tuple[str, ...]:
    words = symbol.detail.split()
    scope = words[-1].partition(".")[0] if words and symbol.detail.startswith("(") else ""
    found = (scope,) if scope in _SCOPES else ()
    return ("readonly", *found) if symbol.kind in ("constant", "dim", "loop", "block") else found


def _language(request: Request) -> list[Token]:
    """Names after an alias of the language, wherever they stand outside comments and strings."""
    analysis, found = request.analysis, []
    aliases = [re.escape(a) for a in analysis.aliases]
    if not aliases:
        return []
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(aliases)})\.(\w+)")
    for number, line in enumerate(split_lines(code_only(request.text)), 1):
        for match in pattern.finditer(line):
            entry = request.catalogue.entries.get(match[1])
            if entry is None:
                continue
            kind = _OF_ENTRY.get(entry.kind, "function")
            start = match.start(1) + 1
            found.append(Token(number, start, len(match[1]), kind, ("defaultLibrary",)))
    return found
