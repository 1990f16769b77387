"""textDocument/prepareRename and rename: a buffer, variable, dim or macro, all of its places.

A macro, kernel, helper or constant gets its new name in every file of the workspace, with a
parameter the arguments that are given by its name, and with a parameter or a dimension the comments
that set it (`by_name.py`).
Refused is what is no name of the author's: names of the language, of modules that lie elsewhere,
and of files outside the workspace; a name that is not renamed everywhere (`several.py`); and one
that would come to mean something else.
"""

from __future__ import annotations

import keyword
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.module_files import OURS
from tilelang_lsp.crossing import Crossing, Found, ModuleFile
from tilelang_lsp.cursor import name_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.by_name import by_name
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.names import Binding, Names, Scope
from tilelang_lsp.several import several


@dataclass(frozen=True, slots=True)
class Renameable:
    """What would be renamed."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class Renaming:
    """The edits, or why there are none."""

    edits: tuple[Edit, ...]
    refused: str = ""


def prepare(request: Request) -> Renameable | None:
    """The name at the position, if it can be renamed."""
    across = crossing(request)
    found = across.at(request.line, request.column)
    if found is None or _refusal(across, found):
        return None
    return Renameable(found.span, found.name)


def rename(request: Request) -> Renaming | None:
    """The edits that give the name at the position a new one."""
    across = crossing(request)
    found = across.at(request.line, request.column)
    if found is None or not found.chain:
        unknown = None if found is None else Renaming((), _refusal(across, found))
        return _of_the_language(request) or unknown
    new = unicodedata.normalize("NFKC", request.new_name)
    refused = _refusal(across, found)
    if not new.isidentifier() or keyword.iskeyword(new) or new == "__debug__":
        refused = f"{request.new_name!r} is no name"
    if refused:
        return Renaming((), refused)
    root = _root(found)
    assert isinstance(root, Binding)  # modules are refused
    kept = [s for s in across.references(root) if _named(across, s) == root.name]
    refused = _outside(across, kept) or _broken(across, root) or several(across, root, kept)
    if not refused and new != root.name:
        refused = _clash(across, root, kept, new)
    also = by_name(across, root, request.project)
    refused = refused or also.refused
    places = (*kept, *also.places)
    return Renaming((), refused) if refused else Renaming(tuple(Edit(s, new) for s in places))


PREPARE = Feature("textDocument/prepareRename", prepare, "current")
RENAME = Feature("textDocument/rename", rename, "current", apart=True)


def _root(found: Found) -> Binding | ModuleFile:
    """The binding that gives the name its spelling: an import `as` it, or the definition."""
    for meant in found.chain[:-1]:
        if isinstance(meant, Binding) and meant.renamed and meant.name == found.name:
            return meant
    return found.chain[-1]


def _refusal(across: Crossing, found: Found) -> str:
    """Why a name cannot be renamed; empty where it can."""
    if not found.chain:
        return f"`{found.name}` is no name of a file of the workspace"
    root = _root(found)
    if isinstance(root, ModuleFile):
        return f"`{found.name}` is a module: rename its file"
    if root.origin is not None and not root.renamed:
        origin = root.origin
        module = "." * origin.level + (origin.module or root.name)
        known = across.workspace.modules.find(origin.module, origin.level, root.path)
        which = "which is outside the workspace" if known is None else "which does not define it"
        of = "the language" if module.split(".")[0] == OURS else f"`{module}`"
        return f"`{found.name}` is a name of {of}, {which}"
    if root.scope.kind == "class":
        return f"`{found.name}` belongs to the class `{root.scope.name}`: not all uses can be seen"
    if root.scope.kind == "module" and across.workspace.modules.is_ours(root.path):
        return f"`{found.name}` is a name of `{OURS}`, whose files are not searched"
    return _outside(across, [root.bound[0]])


def _of_the_language(request: Request) -> Renaming | None:
    dotted = name_at(request.text, request.line, request.column)
    entry = None if dotted is None else request.catalogue.find(request.analysis, dotted.name)
    if dotted is None or entry is None:
        return None
    return Renaming((), f"`{dotted.name}` is a name of the language")


def _outside(across: Crossing, places: list[Span]) -> str:
    """The refusal for a name that also stands in a file that is none of the workspace."""
    workspace = across.workspace
    for span in places:
        if span.file != across.path and not workspace.holds(span.file):
            name = f"`{across.said(span)}`"
            return f"{name} also stands in {_file(span.file)}, which is outside the workspace"
    return ""


def _broken(across: Crossing, root: Binding) -> str:
    """The refusal for a name that also stands where a file cannot be read."""
    paths = across.holding({root.name}, root) if root.scope.kind == "module" else [root.path]
    used = f"`{root.name}` may be used there"
    if root.scope.kind == "module" and not across.workspace.complete:
        return f"there are too many files in the folders: `{root.name}` may be used in others"
    for path in paths:
        names = across.names(path)
        if names is None:
            return f"{_file(path)} cannot be read: {used}"
        lines = split_lines(across.text(path)) if names.broken else ()
        for line in names.broken:
            if line <= len(lines) and root.name in lines[line - 1]:
                where = "" if path == across.path else f" of {_file(path)}"
                return f"line {line}{where} cannot be read: {used}"
    return ""


def _named(across: Crossing, span: Span) -> str:
    """The name that stands in a place, as Python compares names."""
    return unicodedata.normalize("NFKC", across.said(span))


def _clash(across: Crossing, root: Binding, places: list[Span], new: str) -> str:
    """The refusal for a new name that means something else where it would stand."""
    for path in dict.fromkeys(s.file for s in places):
        names = across.names(path)
        if names is None:
            continue
        here = [s for s in places if s.file == path]
        for scope in _scopes_renamed(names, root, here):
            by_star = scope is names.module and across.starred(names, new)
            if new in scope.bindings or by_star:
                return f"`{new}` is another name of `{scope.name or _file(path)}` already"
            said = _captured(names, scope, here, new) or _taken(names, scope, new)
            if said:
                return f"{said}{_where(across, path)}"
    if root.scope.kind == "module":
        for path in across.workspace.holding({new}):
            names = across.names(path)
            if names is not None and across.leads(across.starred(names, root.name), root):
                if new in names.module.bindings:
                    return f"`{new}` is another name of `{_file(path)}` already"
                said = _taken(names, names.module, new)
                if said:
                    return f"{said}{_where(across, path)}"
    return ""


def _scopes_renamed(names: Names, root: Binding, places: list[Span]) -> Iterator[Scope]:
    """The scopes in which the name is bound; `import *` binds it in the module."""
    at = {(s.line, s.column) for s in places}
    for scope in names.scopes:
        binding = scope.bindings.get(root.name)
        if binding is not None and any((s.line, s.column) in at for s in binding.bound):
            yield scope
    if any((s.line, s.column) in at for s, _ in names.free.get(root.name, ())):
        yield names.module


def _captured(names: Names, scope: Scope, places: list[Span], new: str) -> str:
    """Whether an inner scope binds the new name where the old one is used."""
    for inner in names.scopes:
        if new in inner.bindings and inner is not scope and scope in inner.around():
            first, last = inner.lines
            if any(first <= s.line <= last for s in places):
                return f"`{new}` is another name of `{inner.name}` already"
    return ""


def _taken(names: Names, scope: Scope, new: str) -> str:
    """Whether the new name is used here already, and would come to mean this one."""
    used = [s for s, where in names.free.get(new, ()) if scope in where.around()]
    first, last = scope.lines
    for outer in scope.around():
        binding = outer.bindings.get(new) if outer is not scope else None
        used += [s for s in binding.uses if first <= s.line <= last] if binding else []
    return f"`{new}` in line {used[0].line} would come to mean this" if used else ""


def _where(across: Crossing, path: str) -> str:
    return "" if path == across.path else f" ({_file(path)})"


def _file(path: str) -> str:
    return os.path.basename(path)
