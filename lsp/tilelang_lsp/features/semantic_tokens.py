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
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.model import MODULES, Symbol
from tilelang_lsp.names import Binding

TYPES: Final = (
    "variable", "parameter", "function", "macro", "type", "enumMember", "typeParameter", "property",
    "namespace",
)  # fmt: skip
MODIFIERS: Final = (
    "declaration", "readonly", "global", "shared", "fragment", "local", "defaultLibrary",
)  # fmt: skip
_OF_SYMBOL: Final = {
    "parameter": "parameter", "buffer": "variable", "variable": "variable", "loop": "variable",
    "block": "variable", "constant": "enumMember", "dim": "typeParameter", "function": "function",
}  # fmt: skip
_OF_ENTRY: Final = {
    "dtype": "type", "type": "type", "constant": "enumMember", "module": "namespace",
}  # fmt: skip
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
    macros = _macros(request)
    for symbol in request.analysis.symbols:
        kind = _OF_SYMBOL.get(symbol.kind)
        if kind is None:
            continue
        if symbol.kind == "function" and symbol.name in macros:
            kind = "macro"
        is_module = symbol.detail in ("module", *MODULES)
        kind, said = ("namespace", ()) if is_module else (kind, _modifiers(symbol))
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
    """The names of macros, those that other files define as well."""
    around = [n for top in request.analysis.outline for n in top.walk()]
    found = {n.name for n in around if n.kind == "macro"}
    functions = {s.name for s in request.analysis.symbols if s.kind == "function"}
    if functions <= {n.name for n in around}:
        return frozenset(found)
    across = crossing(request)
    names = across.names(across.path)
    for binding in () if names is None else names.module.bindings.values():
        if binding.origin is not None:
            end = across.chain(binding)[-1]
            if isinstance(end, Binding) and end.kind == "macro":
                found.add(binding.name)
    return frozenset(found)


def _modifiers(symbol: Symbol) -> tuple[str, ...]:
    words = symbol.detail.split()
    scope = words[-1].partition(".")[0] if words and symbol.detail.startswith("(") else ""
    found = (scope,) if scope in _SCOPES else ()
    return ("readonly", *found) if symbol.kind in ("constant", "dim", "loop", "block") else found


def _language(request: Request) -> list[Token]:
    """Names after an alias of the language, wherever they stand outside comments and strings."""
    analysis, found = request.analysis, []
    packages = [a.removesuffix(".language") for a in analysis.aliases if a.endswith(".language")]
    roots = [re.escape(name) for name in (*analysis.aliases, *packages)]
    if not roots:
        return []
    pattern = re.compile(rf"(?<![\w.])(?P<root>{'|'.join(roots)})\.(?P<name>\w+)")
    for number, line in enumerate(split_lines(code_only(request.text)), 1):
        for match in pattern.finditer(line):
            entry = request.catalogue.find(analysis, match[0])
            if entry is None:
                continue
            kind = _OF_ENTRY.get(entry.kind, "function")
            start = match.start("name") + 1
            found.append(Token(number, start, len(match["name"]), kind, ("defaultLibrary",)))
    return found
