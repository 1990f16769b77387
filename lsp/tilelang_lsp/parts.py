"""A file in parts: what each definition that holds kernels says, and which of them an edit touched.

Typing in one kernel leaves the others as they are, moved by whole lines; what a part depends on
beside its own text is known from `depends.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilelang.language.frontend import Parsed
from tilelang.language.source import SourceFile
from tilelang_diagnostics import Diagnostic
from tilelang_lint.engine import check
from tilelang_lint.rules import Subject
from tilelang_lsp.code_lines import Code, code_of, moved
from tilelang_lsp.depends import MAIN, Bound, Statements
from tilelang_lsp.facts import program_facts
from tilelang_lsp.model import MODULE, Outline, Part, Symbol
from tilelang_lsp.moves import Moves, Placed
from tilelang_lsp.options import Options
from tilelang_lsp.outline import Imports, contents_of, definitions, imports
from tilelang_lsp.parsed import kernel_of, owner_at, symbols_of


@dataclass(frozen=True, slots=True)
class Top:
    """What a statement at the top of a file defines and imports."""

    definitions: tuple[Outline, ...]
    imports: Imports


# By the identity of the statement, with the line that it was on.
Tops: TypeAlias = dict[int, tuple[ast.stmt, int, Top]]


def tops_of(source: SourceFile, known: Tops) -> Tops:
    """The statements at the top of a file, with what is `known` of those that are the same."""
    found: Tops = {}
    for node in source.tree.body:
        before = known.get(id(node))
        if before is None:
            top = Top(definitions(node, source), imports(node))
        else:
            top = _moved(before[2], node.lineno - before[1])
        found[id(node)] = node, node.lineno, top
    return found


def _moved(top: Top, by: int) -> Top:
    """What a statement defines after it went down by some lines."""
    return replace(top, definitions=tuple(d.down(by) for d in top.definitions)) if by else top


MOST_SEEN = 24  # parts of a file
_Key: TypeAlias = tuple[str, tuple[str, ...], tuple[Bound, ...]]


@dataclass(frozen=True, slots=True)
class File:
    """One version of a file: its parts by the name of the definition, and what is in none."""

    statements: Statements
    options: Options
    parts: Mapping[str, Placed[Part]]  # each where it was when it was read
    outside: tuple[Diagnostic, ...]
    whole: bool  # every part is a function at the top of the file
    path: str
    tops: Tops = field(default_factory=dict)
    # What was read of definitions since all were, the oldest first: edits are often taken back, and
    # a line that is being written stands for the same whenever it is broken.
    seen: Mapping[_Key, tuple[Placed[Part], Code]] = field(default_factory=dict)

    @staticmethod
    def of(
        subject: Subject, statements: Statements, options: Options, tree: ast.Module,
        known: Collection[str] = (),
    ) -> File:  # fmt: skip
        """What was read of a file; `known` are parts that were not read again."""
        grouped: dict[str, list[Parsed]] = {}
        whole = statements.unique
        for parsed in subject.kernels:
            owner = owner_at(tree, parsed.definition.span.line)
            whole = whole and owner is not None
            grouped.setdefault(owner or parsed.name, []).append(parsed)
        ranges = {owner: statements.range(owner) for owner in {*grouped, *known}}
        parts = {
            owner: Placed(
                _part(owner, kernels, subject.path, statements, ranges), statements.starts
            )
            for owner, kernels in grouped.items()
        }
        own = {d for parsed in subject.kernels for d in parsed.diagnostics}
        outside = tuple(d for d in check(subject) if d not in own)
        whole = whole and not subject.failures
        seen = _seen(parts, statements) if whole else {}
        return File(statements, options, parts, outside, whole, subject.path, seen=seen)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """All findings, each once."""
        found = dict.fromkeys(self.outside)
        for placed in self.parts.values():
            moves = Moves(placed.tops, self.statements.starts, self.path)
            found.update(dict.fromkeys(map(moves.diagnostic, placed.what.diagnostics)))
        return iter(found)

    def changed(self, now: Statements, options: Options) -> tuple[str, ...] | None:
        """The parts to read again for a text that is laid out so; None for all of them."""
        if not (self.whole and now.unique) or options != self.options:
            return None
        names = list(self.parts)
        if len(now.starts) != len(self.statements.starts) or any(
            n not in now.functions for n in names
        ):
            return None
        before = self.statements
        if before.shared != now.shared or before.order != now.order:
            return None
        edited = [n for n in now.functions if now.functions[n] != before.functions[n]]
        if not edited and before.bound == now.bound:
            return ()
        # A function that held no kernel may hold one now.
        more = (*names, *now.naming(before))
        touched = {*edited, *(n for n in more if now.own(n) != before.own(n))}
        if before.bound != now.bound and touched.isdisjoint(names):
            touched.update(names[:1])  # one at least says what is bound at the top of the file
        return tuple(n for n in now.functions if n in touched and n != MAIN)

    def seen_before(self, now: Statements, changed: Iterable[str]) -> dict[str, Placed[Part]]:
        """Those of the changed parts whose code was like this once, where it is now."""
        found: dict[str, Placed[Part]] = {}
        for name in changed:
            before = self.seen.get(_key(name, now))
            if before is not None:
                placed, old = before
                at, new = now.starts.index(now.firsts[name]), code_of(now.functions[name])
                part = moved(placed, old, new, at, now.starts, self.path)
                found |= {} if part is None else {name: part}
        return found

    def updated(
        self, read: File, changed: Collection[str], again: Mapping[str, Placed[Part]]
    ) -> File:  # fmt: skip
        """This file with the parts that were read again, and those that are as they were once
        `again`, in front, and the others as they were."""
        gone = Placed(Part(), read.statements.starts)
        front = {**read.parts, **again}
        kept = {n: gone if n in changed else p for n, p in self.parts.items()}
        kept = {n: p for n, p in kept.items() if n not in front}
        latest = _seen(front, read.statements) if read.whole else {}
        seen = {**{k: p for k, p in self.seen.items() if k not in latest}, **latest}
        return replace(
            read, parts={**front, **kept}, seen=dict(list(seen.items())[-MOST_SEEN:])
        )  # fmt: skip


def _seen(
    parts: Mapping[str, Placed[Part]], statements: Statements
) -> dict[_Key, tuple[Placed[Part], Code]]:  # fmt: skip
    return {
        _key(name, statements): (placed, code_of(statements.functions[name]))
        for name, placed in parts.items()
    }


def _key(name: str, statements: Statements) -> _Key:
    """What a part hangs on, as long as `File.changed` does not say that all of them changed; and
    what it says of the top of the file."""
    _, *others = statements.own(name)
    return name, (code_of(statements.functions[name]).said, *others), statements.bound


def _part(
    owner: str, kernels: list[Parsed], path: str, statements: Statements,
    ranges: Mapping[str, tuple[int, int]],
) -> Part:  # fmt: skip
    others = [lines for name, lines in ranges.items() if name != owner]
    facts = [
        fact for parsed in kernels if parsed.function is not None
        for fact in program_facts(parsed, path, statements.lines)
    ]  # fmt: skip
    first, last = ranges[owner]
    symbols = [_without(s, others, ranges[owner]) for s in symbols_of(kernels, path)]
    own = [s.function != MODULE and first <= s.span.line <= last for s in symbols]
    return Part(
        tuple(kernel_of(parsed, owner) for parsed in kernels),
        tuple(s for s, is_own in zip(symbols, own, strict=True) if is_own),
        tuple(s for s, is_own in zip(symbols, own, strict=True) if not is_own),
        tuple(dict.fromkeys(facts)),
        tuple(dict.fromkeys(d for parsed in kernels for d in parsed.diagnostics)),
        tuple((parsed.definition.span, tuple(contents_of(parsed, path))) for parsed in kernels),
    )


def _without(symbol: Symbol, ranges: list[tuple[int, int]], own: tuple[int, int]) -> Symbol:
    """A symbol without its uses in other parts, which those know themselves."""
    first, last = own
    kept = [
        u for u in symbol.uses
        if first <= u.line <= last or not any(a <= u.line <= b for a, b in ranges)
    ]  # fmt: skip
    return symbol if len(kept) == len(symbol.uses) else replace(symbol, uses=tuple(kept))
