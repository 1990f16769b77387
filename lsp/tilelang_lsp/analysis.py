"""What does the compiler know about this text? Text in, values out; no disk, no editor types.

`analyse` runs the static front end and the lint rules and keeps what an editor may ask for.
Broken text is read around its broken lines (`recovery.py`); a statement that is being typed says
nothing about the definition it stands in, so that definition's other findings wait until it
parses again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilelang.language.frame import FrameEnvironment
from tilelang.language.frontend import Parsed, StaticResult
from tilelang.language.source import SourceFile
from tilelang.language.symbols import SymbolTable
from tilelang.program.stmt import Launch as LaunchStatement
from tilelang.program.stmt import walk_statements
from tilelang.program.text import expr_text
from tilelang_diagnostics import Diagnostic, Span
from tilelang_lint.engine import (
    check,
    internal_error,
    mentions_tilelang,
    read_kernels,
    without_suppressed,
)
from tilelang_lint.rules import Subject
from tilelang_lsp import describe, outline
from tilelang_lsp.model import Analysis, Kernel, Launch, Symbol
from tilelang_lsp.recovery import Recovered, recover

SYNTAX_ERROR = "TL101"


def analyse(
    text: str, path: str, values: Mapping[str, Any] | None = None, target: str | None = None,
    project: Mapping[str, Any] | None = None,
) -> Analysis:  # fmt: skip
    """Everything an editor may ask about one version of a file. Never raises for its text."""
    if not mentions_tilelang(text):
        return Analysis(path, text)
    try:
        subject = read_kernels(text, path, values, target, project=project)
        if not any(d.code == SYNTAX_ERROR for d in subject.kernels.diagnostics):
            return _analysis(text, subject, None)
        recovered = recover(text)
        if recovered is None:
            return Analysis(path, text, tuple(subject.kernels.diagnostics), complete=False)
        around = read_kernels(recovered.text, path, values, target, project=project)
        return _analysis(text, around, recovered, subject.kernels.diagnostics)
    except Exception as error:  # ours: the editor keeps what it knew and says so
        return Analysis(path, text, (internal_error(path, error),), complete=False)


def _analysis(
    text: str,
    subject: Subject,
    recovered: Recovered | None,
    syntax_errors: tuple[Diagnostic, ...] = (),
) -> Analysis:
    kernels, path = subject.kernels, subject.path
    source = kernels[0].definition.source if kernels else SourceFile.parse(path, subject.text)
    names = outline.imports(source.tree)
    broken = recovered.definitions_broken() if recovered else ()
    found = [d for d in check(subject) if not _lies_in(d.span, broken)]
    return Analysis(
        path,
        text,
        without_suppressed((*syntax_errors, *found), text, path),
        _symbols(kernels, path),
        tuple(_kernel(parsed) for parsed in kernels),
        outline.outline(source, kernels),
        names.aliases,
        names.imported,
    )


def _lies_in(span: Span | None, ranges: Iterable[tuple[int, int]]) -> bool:
    return span is not None and any(first <= span.line <= last for first, last in ranges)


def _kernel(parsed: Parsed) -> Kernel:
    launches: tuple[Launch, ...] = ()
    if parsed.function is not None:
        launches = tuple(
            _launch(s) for s in walk_statements(parsed.function.body)
            if isinstance(s, LaunchStatement) and s.span is not None
        )  # fmt: skip
    values = tuple((name, repr(value)) for name, value in parsed.assumed.items())
    return Kernel(parsed.name, parsed.definition.span, launches, values)


def _launch(launch: LaunchStatement) -> Launch:
    assert launch.span is not None
    grid = tuple(expr_text(extent) for _, extent in launch.blocks)
    return Launch(launch.span, grid, tuple(expr_text(extent) for _, extent in launch.threads))


def _symbols(kernels: StaticResult, path: str) -> tuple[Symbol, ...]:
    """The symbols of all kernels and of the functions around them, each binding once.

    A macro's own names are bound anew by every kernel that inlines it, and a factory's names are
    used by every kernel in it: those are one symbol with all uses.
    """
    merged: dict[tuple[str, Span], Symbol] = {}
    for table in _tables(kernels):
        for symbol in table.symbols:
            if symbol.span.file != path:
                continue
            span = _name_only(symbol.span, symbol.name)
            new = Symbol(
                symbol.name, symbol.kind, span, tuple(symbol.uses), symbol.detail,
                symbol.function, describe.notes(symbol.value),
            )  # fmt: skip
            key = (symbol.name, span)
            merged[key] = _merge(merged[key], new) if key in merged else new
    return tuple(sorted(merged.values(), key=lambda s: s.span))


def _name_only(span: Span, name: str) -> Span:
    """The name alone, where a parameter's span takes in its annotation."""
    end = span.column + len(name)
    return Span(span.file, span.line, span.column, span.line, end)


def _merge(known: Symbol, new: Symbol) -> Symbol:
    uses = tuple(dict.fromkeys((*known.uses, *new.uses)))
    better = new if new.detail and not known.detail else known
    return replace(better, uses=uses)


def _tables(kernels: StaticResult) -> Iterator[SymbolTable]:
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
