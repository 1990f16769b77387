"""What does one traced kernel say to an editor? Its launches, open sizes and symbols, as values."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tilelang.language.frame import FrameEnvironment
from tilelang.language.frontend import Parsed
from tilelang.language.symbols import SymbolTable
from tilelang.program.stmt import Launch as LaunchStatement
from tilelang.program.stmt import walk_statements
from tilelang.program.text import expr_text
from tilelang_diagnostics import Span
from tilelang_lint.open_sizes import open_names
from tilelang_lsp import describe
from tilelang_lsp.assembly import merged
from tilelang_lsp.model import Kernel, Launch, Symbol


def kernel_of(parsed: Parsed, owner: str) -> Kernel:
    """A kernel as the editor knows it."""
    launches: tuple[Launch, ...] = ()
    path = parsed.definition.span.file
    if parsed.function is not None:
        for s in walk_statements(parsed.function.body):
            if isinstance(s, LaunchStatement) and s.span is not None and s.span.file == path:
                launches = (*launches, _launch(s))
    values = tuple((name, repr(value)) for name, value in parsed.assumed.items())
    span = parsed.definition.span
    return Kernel(parsed.name, span, launches, values, open_names(parsed), owner)


def owner_at(tree: ast.Module, line: int) -> str | None:
    """The definition at the top of the file that holds a line."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            return node.name
    return None


def _launch(launch: LaunchStatement) -> Launch:
    assert launch.span is not None
    grid = tuple(expr_text(extent) for _, extent in launch.blocks)
    return Launch(launch.span, grid, tuple(expr_text(extent) for _, extent in launch.threads))


def symbols_of(kernels: Iterable[Parsed], path: str) -> tuple[Symbol, ...]:
    """The symbols of kernels and of the functions around them, each binding once."""
    found = []
    for table in _tables(kernels):
        for symbol in table.symbols:
            if symbol.span.file == path:
                span = _name_only(symbol.span, symbol.name)
                uses = tuple(u for u in symbol.uses if u.file == path)
                found.append(Symbol(
                    symbol.name, symbol.kind, span, uses, symbol.detail,
                    symbol.function, describe.notes(symbol.value),
                ))  # fmt: skip
    return merged(found)


def _name_only(span: Span, name: str) -> Span:
    """The name alone, where a parameter's span takes in its annotation."""
    end = span.column + len(name)
    return Span(span.file, span.line, span.column, span.line, end)


def _tables(kernels: Iterable[Parsed]) -> Iterator[SymbolTable]:
    """The kernels' tables, then those of the functions and module around them, each once."""
    seen: set[int] = set()
    for parsed in kernels:
        tables = [parsed.symbols]
        env = parsed.definition.env
        while isinstance(env, FrameEnvironment):
            tables.append(env.frame.symbols)
            env = env.frame.env
        for table in tables:
            if id(table) not in seen:
                seen.add(id(table))
                yield table
