"""A file in parts: what each definition that holds kernels says, and which of them an edit touched.

Typing in one kernel leaves the others as they are, moved by whole lines. What a part says depends
on its own text and on all that is in no part, so when that changes, everything is read again.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilelang.language.frontend import Parsed
from tilelang.language.source import SourceFile
from tilelang_diagnostics import Diagnostic
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.engine import check
from tilelang_lint.rules import Subject
from tilelang_lsp.facts import program_facts
from tilelang_lsp.model import Outline, Part, Symbol
from tilelang_lsp.moves import Moves, Placed
from tilelang_lsp.options import Options
from tilelang_lsp.outline import Imports, contents_of, definitions, imports
from tilelang_lsp.parsed import kernel_of, owner_at, symbols_of

MODULE = "<module>"  # the function of what is bound at the top of a file


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the statements at the top of a file begin, and the text of each function among them."""

    starts: tuple[int, ...]
    functions: Mapping[str, str]  # their text by name
    others: tuple[str, ...]  # what is no function, comments between statements too
    lines: tuple[str, ...]
    unique: bool
    firsts: Mapping[str, int]  # lines of functions

    @staticmethod
    def of(tree: ast.Module, text: str) -> Layout:
        """Of a text that could be read."""
        lines = split_lines(text)
        starts: list[int] = []
        functions: dict[str, str] = {}
        firsts: dict[str, int] = {}
        others: list[str] = []
        unique = True
        between = 0
        for node in tree.body:
            decorators = getattr(node, "decorator_list", ())
            first = min([node.lineno, *(d.lineno for d in decorators)])
            starts.append(first)
            others += [line for line in lines[between : first - 1] if line.strip()]
            between = node.end_lineno or first
            own = "\n".join(lines[first - 1 : between])
            if isinstance(node, ast.FunctionDef):
                unique = unique and node.name not in functions
                functions[node.name], firsts[node.name] = own, first
            else:
                others.append(own)
        others += [line for line in lines[between:] if line.strip()]
        return Layout(tuple(starts), functions, tuple(others), lines, unique, firsts)

    def range(self, name: str) -> tuple[int, int]:
        """First and last line of a function; of what is none, no line."""
        first = self.firsts.get(name)
        return (0, -1) if first is None else (first, first + self.functions[name].count("\n"))

    def without(self, names: Collection[str]) -> tuple[object, ...]:
        """What is in the file beside some functions; empty lines between statements aside."""
        rest = ((name, text) for name, text in self.functions.items() if name not in names)
        return (self.others, list(self.functions), *rest)


@dataclass(frozen=True, slots=True)
class Top:
    """What a statement at the top of a file defines and imports."""

    definitions: tuple[Outline, ...]
    imports: Imports


Tops: TypeAlias = dict[int, tuple[ast.stmt, Top]]  # by the identity of the statement


def tops_of(source: SourceFile, known: Tops) -> Tops:
    """The statements at the top of a file, with what is `known` of those that are the same."""
    return {
        id(node): known.get(id(node)) or (node, Top(definitions(node, source), imports(node)))
        for node in source.tree.body
    }


@dataclass(frozen=True, slots=True)
class File:
    """One version of a file: its parts by the name of the definition, and what is in none."""

    layout: Layout
    options: Options
    parts: Mapping[str, Placed[Part]]  # each where it was when it was read
    outside: tuple[Diagnostic, ...]
    whole: bool  # every part is a function at the top of the file
    path: str
    tops: Tops = field(default_factory=dict)

    @staticmethod
    def of(
        subject: Subject, layout: Layout, options: Options, tree: ast.Module,
        known: Collection[str] = (),
    ) -> File:  # fmt: skip
        """What was read of a file; `known` are parts that were not read again."""
        grouped: dict[str, list[Parsed]] = {}
        whole = layout.unique
        for parsed in subject.kernels:
            owner = owner_at(tree, parsed.definition.span.line)
            whole = whole and owner is not None
            grouped.setdefault(owner or parsed.name, []).append(parsed)
        ranges = {owner: layout.range(owner) for owner in {*grouped, *known}}
        parts = {
            owner: Placed(_part(owner, kernels, subject.path, layout, ranges), layout.starts)
            for owner, kernels in grouped.items()
        }
        own = {d for parsed in subject.kernels for d in parsed.diagnostics}
        outside = tuple(d for d in check(subject) if d not in own)
        whole = whole and not subject.failures
        return File(layout, options, parts, outside, whole, subject.path)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """All findings, each once."""
        found = dict.fromkeys(self.outside)
        for placed in self.parts.values():
            moves = Moves(placed.tops, self.layout.starts, self.path)
            found.update(dict.fromkeys(map(moves.diagnostic, placed.what.diagnostics)))
        return iter(found)

    def changed(self, now: Layout, options: Options) -> tuple[str, ...] | None:
        """The parts to read again for a text that is laid out so; None for all of them."""
        if not (self.whole and now.unique) or options != self.options:
            return None
        names = list(self.parts)
        if len(now.starts) != len(self.layout.starts) or any(n not in now.functions for n in names):
            return None
        if self.layout.without(names) != now.without(names):
            return None
        return tuple(n for n in names if now.functions[n] != self.layout.functions[n])

    def updated(self, read: File, changed: Collection[str]) -> File:
        """This file with the parts that were read again, the others as they were."""
        gone = Placed(Part(), read.layout.starts)
        parts = {
            name: read.parts.get(name, gone) if name in changed else placed
            for name, placed in self.parts.items()
        }
        parts.update((n, p) for n, p in read.parts.items() if n not in parts)
        return replace(read, parts=parts)


def _part(
    owner: str, kernels: list[Parsed], path: str, layout: Layout,
    ranges: Mapping[str, tuple[int, int]],
) -> Part:  # fmt: skip
    others = [lines for name, lines in ranges.items() if name != owner]
    facts = [
        fact for parsed in kernels if parsed.function is not None
        for fact in program_facts(parsed.function, path, layout.lines)
    ]  # fmt: skip
    first, last = ranges[owner]
    symbols = [_without(s, others) for s in symbols_of(kernels, path)]
    own = [s.function != MODULE and first <= s.span.line <= last for s in symbols]
    return Part(
        tuple(kernel_of(parsed, owner) for parsed in kernels),
        tuple(s for s, is_own in zip(symbols, own, strict=True) if is_own),
        tuple(s for s, is_own in zip(symbols, own, strict=True) if not is_own),
        tuple(dict.fromkeys(facts)),
        tuple(dict.fromkeys(d for parsed in kernels for d in parsed.diagnostics)),
        tuple((parsed.definition.span, tuple(contents_of(parsed, path))) for parsed in kernels),
    )


def _without(symbol: Symbol, ranges: list[tuple[int, int]]) -> Symbol:
    """A symbol without its uses in other parts, which those know themselves."""
    kept = [u for u in symbol.uses if not any(a <= u.line <= b for a, b in ranges)]
    return symbol if len(kept) == len(symbol.uses) else replace(symbol, uses=tuple(kept))
