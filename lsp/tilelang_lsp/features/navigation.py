"""textDocument/definition, references, documentHighlight: where is this name bound and used?

Names are followed into the other files of the workspace. Where a name of a kernel is bound several
times, its definition is the binding whose value is used at the position.
"""

from __future__ import annotations

from tilelang_diagnostics import Span
from tilelang_lsp.crossing import Crossing, Found, ModuleFile
from tilelang_lsp.cursor import name_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.names import Binding


def definition(request: Request) -> tuple[Span, ...]:
    """Where the name at the position is bound; for `T.copy`, its source in the compiler."""
    found = crossing(request).at(request.line, request.column)
    end = None if found is None else found.end
    if isinstance(end, ModuleFile):
        return (Span(end.path, 1, 1, 1, 1),) if request.workspace.exists(end.path) else ()
    ours = _of_the_language(request)
    if ours is not None:
        return (ours,)
    symbol = request.analysis.symbol_at(request.line, request.column)
    if symbol is not None and (end is None or _is_bound_there(end, symbol.span)):
        return (symbol.span,)
    return () if end is None else (end.bound[0],)


def references(request: Request) -> tuple[Span, ...]:
    """Every place of the name at the position, in all files, its binding only if asked for."""
    across = crossing(request)
    found = across.at(request.line, request.column)
    root = None if found is None else _root(found)
    if root is None:
        return _traced(request) if found is None else ()
    return _asked(request, root, across.references(root))


def highlights(request: Request) -> tuple[Span, ...]:
    """Every place of the name at the position in this file."""
    across = crossing(request)
    found = across.at(request.line, request.column)
    root = None if found is None else _root(found)
    if root is None:
        return _traced(request) if found is None else ()
    return tuple(across.here(root))


DEFINITION = Feature("textDocument/definition", definition, "current")
REFERENCES = Feature("textDocument/references", references, "current", apart=True)
HIGHLIGHT = Feature("textDocument/documentHighlight", highlights, "current")


def crossing(request: Request) -> Crossing:
    """The names of all files, as the file asked about sees them."""
    return Crossing(request.workspace, request.analysis.path, request.text)


def _root(found: Found) -> Binding | None:
    """The binding that all places mean; of a module that is imported, its name here."""
    if found.binding is not None:
        return found.binding
    first = found.chain[0] if found.chain else None
    return first if isinstance(first, Binding) and first.name == found.name else None


def _asked(request: Request, root: Binding, places: list[Span]) -> tuple[Span, ...]:
    """The places; without the binding where the editor does not want it."""
    own = () if request.include_declaration else root.bound
    return tuple(s for s in places if s not in own)


def _traced(request: Request) -> tuple[Span, ...]:
    """What tracing saw, where the text itself cannot be read."""
    symbol = request.analysis.symbol_at(request.line, request.column)
    if symbol is None:
        return ()
    return (*((symbol.span,) if request.include_declaration else ()), *symbol.uses)


def _is_bound_there(binding: Binding, span: Span) -> bool:
    """Whether a span is one of the places where a name is bound, and no import of it."""
    return binding.origin is None and any(
        (s.file, s.line, s.column) == (span.file, span.line, span.column) for s in binding.bound
    )


def _of_the_language(request: Request) -> Span | None:
    dotted = name_at(request.text, request.line, request.column)
    entry = None if dotted is None else request.catalogue.find(request.analysis, dotted.name)
    return Span(entry.file, entry.line, 1, entry.line, 1) if entry and entry.file else None
