"""textDocument/definition, references, documentHighlight: where is this name bound and used?"""

from __future__ import annotations

from tilelang_diagnostics import Span
from tilelang_lsp.cursor import dotted_at
from tilelang_lsp.features.base import Feature, Request


def definition(request: Request) -> tuple[Span, ...]:
    """Where the name at the position is bound; for `T.copy`, its source in the compiler."""
    symbol = request.analysis.symbol_at(request.line, request.column)
    if symbol is not None:
        return (symbol.span,)
    dotted = dotted_at(request.text, request.line, request.column)
    if dotted is None:
        return ()
    entry = request.catalogue.find(request.analysis, dotted.name)
    if entry is not None and entry.file:
        return (Span(entry.file, entry.line, 1, entry.line, 1),)
    around = request.analysis.outline
    return tuple(
        node.name_span for top in around for node in top.walk()
        if node.name == dotted.name and node.kind in ("kernel", "function", "macro", "class")
    )[:1]  # fmt: skip


def references(request: Request) -> tuple[Span, ...]:
    """Every place of the name at the position, its binding first if asked for."""
    symbol = request.analysis.symbol_at(request.line, request.column)
    if symbol is None:
        return ()
    declaration = (symbol.span,) if request.include_declaration else ()
    return (*declaration, *symbol.uses)


DEFINITION = Feature("textDocument/definition", definition, "current")
REFERENCES = Feature("textDocument/references", references, "current")
HIGHLIGHT = Feature("textDocument/documentHighlight", references, "current")
