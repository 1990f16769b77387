"""Does a name mean the same wherever it stands? If not, it cannot be renamed everywhere.

try:
    from fast import double        `double` is a name of `fast` or of `slow`, and only
except ImportError:                one of them would get the new name
    from slow import double
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tilelang_diagnostics import Span
from tilelang_lsp.crossing import Crossing, Meaning
from tilelang_lsp.names import Binding, Names, Origin

_Place = tuple[str, int, int]


def several(across: Crossing, root: Binding, places: list[Span]) -> str:
    """Why some of the places of a binding may be those of another; empty where none is."""
    for function in across.functions_of(root):
        calls = across.references(function)
        said = several(across, function, calls) or _bound_again(across, function, calls)
        if said:
            return said
    at = {_place(span) for span in places}
    for path, names in _files(across, root):
        for origin in _other_origins(across, names, root, at):
            module = "." * origin.level + (origin.module or origin.name)
            return f"`{root.name}` of {os.path.basename(path)} may also be that of `{module}`"
    for path in dict.fromkeys(span.file for span in places):
        names_there = across.names(path)
        for name in () if names_there is None else _unsure_modules(across, names_there, at):
            return f"`{name}` of {os.path.basename(path)} may be several modules"
    return ""


def _unsure_modules(across: Crossing, names: Names, at: set[_Place]) -> Iterator[str]:
    """The names before `.` in some places that may be one module or another."""
    for chain in names.chains:
        if at.isdisjoint(map(_place, chain.attributes)):
            continue
        module = names.of(chain.root)
        sources = len(across.starred(names, chain.name))
        if module is not None:
            sources = module.sources + (sources if module.scope is names.module else 0)
        if sources > 1:
            yield chain.name


def _other_origins(
    across: Crossing, names: Names, root: Binding, at: set[_Place]
) -> Iterator[Origin]:
    """The imports of a file by which the name of a binding may mean something else."""

    def leads(meant: Meaning | None) -> bool:
        return meant is not None and across.leads([meant], root)

    for binding in _bindings(names, root.name):
        touched = not at.isdisjoint(map(_place, binding.bound))
        for origin, renamed in binding.origins:
            if touched and not renamed and not leads(across.origin(names, origin)):
                yield origin
        starred = across.starred(names, root.name) if binding.scope is names.module else []
        if any(leads(meant) is not touched for meant in starred):
            yield from names.stars
    if root.name in names.free:
        starred = across.starred(names, root.name)
        if len({leads(meant) for meant in starred}) > 1:
            yield from names.stars


def _bound_again(across: Crossing, function: Binding, places: list[Span]) -> str:
    """Why the calls of a function may be those of others: a name of it is bound again."""
    at = {_place(span) for span in places}
    for path in dict.fromkeys(span.file for span in places):
        names = across.names(path)
        scopes = () if names is None else names.scopes
        for binding in (found for scope in scopes for found in scope.bindings.values()):
            own = binding.key == function.key
            if (len(binding.bound) if own else binding.sources) > 1:
                if not at.isdisjoint(map(_place, binding.bound)):
                    return f"`{binding.name}` of {os.path.basename(path)} is bound several times"
    return ""


def _files(across: Crossing, root: Binding) -> Iterator[tuple[str, Names]]:
    """The files that may mean a binding."""
    inside = root.scope.kind != "module"
    for path in (root.path,) if inside else across.holding({root.name}, root):
        names = across.names(path)
        if names is not None:
            yield path, names


def _bindings(names: Names, name: str) -> Iterator[Binding]:
    for scope in names.scopes:
        found = scope.bindings.get(name)
        if found is not None:
            yield found


def _place(span: Span) -> _Place:
    return span.file, span.line, span.column
