"""textDocument/prepareRename and rename: a buffer, variable, dim or macro, all of its places.

A name of the language, a keyword and what the text does not bind cannot be renamed. A name that
is taken in the same function is refused, since the two would become one.
"""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass, replace
from typing import TypeGuard

from tilelang.language.source import SourceFile
from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import Symbol
from tilelang_lsp.recovery import recover


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
    symbol = request.analysis.symbol_at(request.line, request.column)
    span = None if symbol is None else symbol.at(request.line, request.column)
    if symbol is None or span is None or not _is_name(request, span, symbol.name):
        return None
    return Renameable(span, symbol.name)


def rename(request: Request) -> Renaming | None:
    """The edits that give the name at the position a new one."""
    found = prepare(request)
    symbol = request.analysis.symbol_at(request.line, request.column)
    if found is None or symbol is None:
        return None
    new = request.new_name
    if not new.isidentifier() or keyword.iskeyword(new):
        return Renaming((), f"{new!r} is no name")
    group = same_name(request, symbol)
    functions = {s.function for s in group}
    if new != symbol.name and any(
        s.name == new and s.function in functions for s in request.analysis.symbols
    ):
        return Renaming((), f"`{new}` is another name of `{symbol.function}` already")
    places = {span: None for s in group for span in (s.span, *s.uses)}
    spans = [s for s in places if _is_name(request, s, symbol.name)]
    spans += [s for s in keyword_places(request, group) if s not in places]
    return Renaming(tuple(Edit(span, new) for span in sorted(spans)))


PREPARE = Feature("textDocument/prepareRename", prepare, "current")
RENAME = Feature("textDocument/rename", rename, "current")


def same_name(request: Request, symbol: Symbol) -> tuple[Symbol, ...]:
    """All bindings that are one name to the author: a name assigned twice in a function."""
    return tuple(
        s for s in request.analysis.symbols
        if s.name == symbol.name and s.function == symbol.function
    )  # fmt: skip


def keyword_places(request: Request, group: tuple[Symbol, ...]) -> list[Span]:
    """`name=` in calls of the function whose parameter is meant, in this file."""
    first = group[0]
    owners = {
        n.name_span.line for top in request.analysis.outline for n in top.walk()
        if n.name == first.function and n.kind in ("kernel", "function", "macro")
    }  # fmt: skip
    readable = recover(request.text)
    if not owners or readable is None:
        return []
    source = SourceFile.parse(request.analysis.path, readable.text)
    nodes = list(ast.walk(source.tree))
    if not any(_takes(n, first.name) for n in nodes if getattr(n, "lineno", 0) in owners):
        return []
    spans = (
        source.span(word) for call in nodes if _calls(call, first.function)
        for word in call.keywords if word.arg == first.name
    )  # fmt: skip
    return [replace(s, end_line=s.line, end_column=s.column + len(first.name)) for s in spans]


def _takes(node: ast.AST, name: str) -> bool:
    """Whether a node is a function with a parameter of that name."""
    if not isinstance(node, ast.FunctionDef):
        return False
    said = node.args
    return any(a.arg == name for a in (*said.posonlyargs, *said.args, *said.kwonlyargs))


def _calls(node: ast.AST, function: str) -> TypeGuard[ast.Call]:
    """Whether a node calls a function by its name; a method of that name is another one."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    )


def _is_name(request: Request, span: Span, name: str) -> bool:
    """Whether a span is the name as written, and not a part of something else."""
    lines = split_lines(request.text)
    if span.file != request.analysis.path or span.line > len(lines):
        return False
    return lines[span.line - 1][span.column - 1 : span.end_column - 1] == name
