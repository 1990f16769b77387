"""Which definitions does a file hold, and under which names does it know the language?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilelang.language.frontend import Parsed
from tilelang.language.source import SourceFile
from tilelang_diagnostics import Span
from tilelang_lsp.definitions import Definition, first_line, marks, name_column
from tilelang_lsp.model import Outline, OutlineKind

LANGUAGE = "tilelang.language"


@dataclass(frozen=True, slots=True)
class Imports:
    """Names for the language as a module, and names taken out of it (`copy` -> `copy`)."""

    aliases: tuple[str, ...]
    imported: tuple[tuple[str, str], ...]


def imports(statement: ast.stmt) -> Imports:
    """What a statement at the top of a file, and all below it, import of the language."""
    aliases: dict[str, None] = {}
    imported: dict[str, str] = {}
    for node in (statement, *_statements(statement)):
        match node:
            case ast.Import(names=names):
                for name in names:
                    if name.name == LANGUAGE:
                        aliases[name.asname or LANGUAGE] = None
                    elif name.name == "tilelang":
                        aliases[f"{name.asname or 'tilelang'}.language"] = None
            case ast.ImportFrom(module="tilelang", names=names):
                for name in names:
                    if name.name == "language":
                        aliases[name.asname or name.name] = None
            case ast.ImportFrom(module="tilelang.language", names=names):
                for name in names:
                    imported[name.asname or name.name] = name.name
    return Imports(tuple(aliases), tuple(imported.items()))


def _statements(block: ast.AST) -> Iterator[ast.stmt]:
    """All statements below, without a look into their expressions, where most nodes are."""
    for field in ("body", "orelse", "finalbody", "handlers"):
        for node in getattr(block, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from _statements(node)


def definitions(statement: ast.stmt, source: SourceFile) -> tuple[Outline, ...]:
    """The classes and functions that a statement at the top of a file defines, what is in kernels
    aside."""
    return tuple(_definitions(ast.Module([statement], []), source))


def contents_of(parsed: Parsed, path: str) -> Iterator[Outline]:
    """The parameters and buffers of a kernel."""
    for symbol in parsed.symbols.symbols:
        if symbol.function != parsed.name or symbol.span.file != path:
            continue
        if symbol.kind == "parameter" or symbol.kind == "buffer":
            yield Outline(symbol.name, symbol.kind, symbol.span, symbol.span, symbol.detail)


def _definitions(parent: ast.AST, source: SourceFile) -> Iterator[Outline]:
    for field in ("body", "orelse", "finalbody", "handlers"):
        for node in getattr(parent, field, ()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield _definition(node, source)
            else:
                yield from _definitions(node, source)


def _definition(node: Definition, source: SourceFile) -> Outline:
    span = source.span(node)
    column = name_column(source.lines, span.line, span.column)
    name_span = Span(span.file, span.line, column, span.line, column + len(node.name))
    whole = replace(span, line=first_line(node))  # a decorator begins in the same column
    inner = tuple(_definitions(node, source))
    return Outline(node.name, _kind(node), whole, name_span, "", inner)


def _kind(node: Definition) -> OutlineKind:
    if isinstance(node, ast.ClassDef):
        return "class"
    return "macro" if "macro" in marks(node) else "function"
