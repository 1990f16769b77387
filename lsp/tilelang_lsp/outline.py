"""Which definitions does a file hold, and under which names does it know the language?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang.language.frontend import Parsed
from tilelang.language.source import SourceFile
from tilelang_diagnostics import Span
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


def _definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: SourceFile
) -> Outline:
    name_span = _name_span(node, source)
    whole = source.span(node)
    if node.decorator_list:
        whole = source.span(node.decorator_list[0]).to(whole)
    inner = tuple(_definitions(node, source))
    return Outline(node.name, _kind(node), whole, name_span, "", inner)


def _kind(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> OutlineKind:
    if isinstance(node, ast.ClassDef):
        return "class"
    if any(ast.unparse(d).split("(")[0].endswith("macro") for d in node.decorator_list):
        return "macro"
    return "function"


def _name_span(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: SourceFile
) -> Span:
    start = source.span(node)
    words = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}
    column = start.column + len(words[type(node)])
    return Span(start.file, start.line, column, start.line, column + len(node.name))
