"""textDocument/prepareCallHierarchy and its two questions: which macro is inlined where?"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import dotted_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import Analysis, Call, Outline


@dataclass(frozen=True, slots=True)
class Item:
    """A function of a file."""

    name: str
    kind: str
    whole: Span
    name_span: Span


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls between two functions: `other` is the one asked for."""

    other: Item
    places: tuple[Span, ...]
    incoming: bool


def prepare(request: Request) -> tuple[Item, ...]:
    """The function whose name is at the position, where it is defined or called."""
    dotted = dotted_at(request.text, request.line, request.column)
    if dotted is None:
        return ()
    return tuple(_item(n) for n in _functions(request.analysis) if n.name == dotted.name)[:1]


def incoming(analysis: Analysis, name: str) -> tuple[Calls, ...]:
    """Who inlines the function."""
    return _grouped(analysis, [(c.caller, c.span) for c in _calls(analysis) if c.function == name],
                    True)  # fmt: skip


def outgoing(analysis: Analysis, name: str) -> tuple[Calls, ...]:
    """What the function inlines."""
    return _grouped(analysis, [(c.function, c.span) for c in _calls(analysis) if c.caller == name],
                    False)  # fmt: skip


PREPARE = Feature("textDocument/prepareCallHierarchy", prepare, "current")


def _calls(analysis: Analysis) -> list[Call]:
    """Those seen while tracing, and those that the text alone shows where tracing did not come."""
    found = {c: None for kernel in analysis.kernels for c in kernel.calls}
    places = {(c.function, c.span.line, c.span.column) for c in found}
    functions = _functions(analysis)
    names = {n.name for n in functions}
    lines = split_lines(analysis.text)
    for symbol in analysis.symbols:
        for use in symbol.uses if symbol.kind == "function" and symbol.name in names else ():
            rest = lines[use.line - 1][use.end_column - 1 :] if use.line <= len(lines) else ""
            around = [n for n in functions if n.whole.line <= use.line <= n.whole.end_line]
            known = (symbol.name, use.line, use.column) in places
            if not known and around and rest.lstrip().startswith("("):
                caller = max(around, key=lambda n: n.whole.line)
                if caller.name_span.line != use.line:
                    found[Call(symbol.name, use, caller.name)] = None
    return list(found)


def _grouped(
    analysis: Analysis, found: list[tuple[str, Span]], incoming: bool
) -> tuple[Calls, ...]:  # fmt: skip
    items = {n.name: _item(n) for n in _functions(analysis)}
    places: dict[str, dict[Span, None]] = {}
    for name, span in found:
        if name in items and span.file == analysis.path:
            places.setdefault(name, {})[span] = None
    return tuple(Calls(items[n], tuple(spans), incoming) for n, spans in places.items())


def _functions(analysis: Analysis) -> list[Outline]:
    kinds = ("kernel", "function", "macro")
    return [n for top in analysis.outline for n in top.walk() if n.kind in kinds]


def _item(node: Outline) -> Item:
    return Item(node.name, node.kind, node.whole, node.name_span)
