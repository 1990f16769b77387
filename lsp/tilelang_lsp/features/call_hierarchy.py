"""textDocument/prepareCallHierarchy and its two questions: which macro is inlined where?

Over all files: a macro of one is inlined by kernels of others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.names import Binding, Names, Scope

FUNCTIONS = ("kernel", "function", "macro")


@dataclass(frozen=True, slots=True)
class Item:
    """A function of a file; or, of `kind` "module", what the file does outside of functions."""

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
    found = crossing(request).at(request.line, request.column)
    function = None if found is None else found.binding
    return () if function is None else tuple(_item(function))


def incoming(across: Crossing, line: int, column: int) -> tuple[Calls, ...]:
    """Who inlines the function whose name is at a position."""
    function = _function_at(across, line, column)
    if function is None:
        return ()
    found: list[tuple[Binding, Span]] = []
    outside: dict[Item, dict[Span, None]] = {}
    places = {(s.file, s.line, s.column) for s in across.references(function)}
    for path in dict.fromkeys(file for file, _, _ in sorted(places)):
        names = across.names(path)
        for call in () if names is None else names.calls:
            if (path, call.function.line, call.function.column) in places:
                caller = _function_around(call.scope)
                if caller is not None:
                    found.append((caller, call.function))
                elif names is not None:
                    outside.setdefault(_module(names), {})[call.function] = None
    modules = (Calls(item, tuple(spans), True) for item, spans in outside.items())
    return (*_grouped(found, True), *modules)


def outgoing(across: Crossing, line: int, column: int) -> tuple[Calls, ...]:
    """What the function whose name is at a position inlines."""
    function = _function_at(across, line, column)
    names = None if function is None else across.names(function.path)
    if function is None or names is None:
        return ()
    found: list[tuple[Binding, Span]] = []
    for call in names.calls:
        around = _function_around(call.scope)
        if around is not None and around.key == function.key:
            called = across.function_of(names, call)
            if called is not None:
                found.append((called, call.function))
    return _grouped(found, False)


PREPARE = Feature("textDocument/prepareCallHierarchy", prepare, "current")


def _function_at(across: Crossing, line: int, column: int) -> Binding | None:
    found = across.at(line, column)
    return None if found is None else found.binding


def _function_around(scope: Scope) -> Binding | None:
    """The function in whose text something stands; None at the top of a file or class."""
    for inner in scope.around():
        if inner.kind == "function" and inner.parent is not None:
            found = inner.parent.bindings.get(inner.name)
            if found is not None and found.kind in FUNCTIONS:
                return found
    return None


def _grouped(found: list[tuple[Binding, Span]], incoming: bool) -> tuple[Calls, ...]:
    items: dict[object, Item] = {}
    places: dict[object, dict[Span, None]] = {}
    for function, span in found:
        for item in _item(function):
            items[function.key] = item
            places.setdefault(function.key, {})[span] = None
    return tuple(Calls(items[k], tuple(spans), incoming) for k, spans in places.items())


def _module(names: Names) -> Item:
    """A file as what calls."""
    first, last = names.module.lines
    whole = Span(names.path, first, 1, last, 1)
    return Item(os.path.basename(names.path), "module", whole, Span(names.path, 1, 1, 1, 1))


def _item(function: Binding) -> Iterator[Item]:
    if function.kind in FUNCTIONS and function.whole is not None:
        yield Item(function.name, function.kind, function.whole, function.bound[-1])
