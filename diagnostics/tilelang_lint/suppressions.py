"""Which findings did the author switch off, and where?

    T.copy(A, B)  # tilelang: ignore[copy-not-vectorised] eight elements, once per launch

    # tilelang: ignore[TL306, TL601] the layout is fixed by the caller
    T.copy(A, B)

    # tilelang: ignore-file[TL306]

A comment at the end of a statement covers the whole statement, a comment on a line of its own the
statement that follows it (of a decorated function: up to its `def` line), one for the file, at the
margin, all of it. Text after the bracket
is the reason, for people.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tilelang_diagnostics import Diagnostic
from tilelang_lint.comments import IGNORE, IGNORE_FILE, comments
from tilelang_lint.selection import matches

_LAST_LINE = 10**9
_LAYOUT_TOKENS = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


@dataclass(frozen=True, slots=True)
class Selector:
    """A code, name or group as a comment says it, and where (1-based, in code points)."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Suppression:
    """Lines `first` to `last` give none of the selected findings."""

    first: int
    last: int
    selectors: tuple[Selector, ...]

    @property
    def is_of_file(self) -> bool:
        """Whether it is for all of a file."""
        return self.last == _LAST_LINE


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All suppressions of one file."""

    entries: tuple[Suppression, ...] = ()

    def covers(self, diagnostic: Diagnostic, path: str) -> bool:
        """Whether a comment of this file switches `diagnostic` off. Our own failures stay."""
        return next(self.covering(diagnostic, path), None) is not None

    def covering(self, diagnostic: Diagnostic, path: str) -> Iterator[Selector]:
        """What in the comments switches `diagnostic` off."""
        span = diagnostic.span
        if span is None or span.file != path or diagnostic.is_internal:
            return
        for entry in self.entries:
            if entry.first <= span.line <= entry.last:
                yield from (s for s in entry.selectors if matches(s.text, diagnostic.code))


def suppressions_in(text: str) -> Suppressions:
    """The suppressions that comments of `text` ask for; a text that is no Python may have some."""
    entries = [
        Suppression(1, _LAST_LINE, _said(m, text.count("\n", 0, m.start()) + 1, -m.start()))
        for m in comments(text, IGNORE_FILE)
    ]
    if not IGNORE.search(text):
        return Suppressions(tuple(entries))
    waiting: list[tuple[Selector, ...]] = []  # of own-line comments: their statement is to come
    for part in _parts(text):
        if part.kind == "comment":
            waiting += part.selectors
            continue
        wanted = [*waiting, *part.selectors]
        entries += [Suppression(part.first, part.last, selectors) for selectors in wanted]
        if part.kind == "statement":
            waiting = []
    return Suppressions(tuple(entries))


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement (or the header of one), a decorator, or a comment between statements."""

    kind: Literal["statement", "decorator", "comment"]
    first: int
    last: int
    selectors: tuple[tuple[Selector, ...], ...]


def _parts(text: str) -> Iterator[_Part]:
    """The parts of a text in order, as far as it can be read."""
    kind: Literal["statement", "decorator"] = "statement"
    first: int | None = None
    last = 1
    found: list[tuple[Selector, ...]] = []
    for token in _tokens(text):
        last = token.end[0]
        if token.type == tokenize.COMMENT:
            selectors = _selectors(token)
            if first is not None:
                found.append(selectors)
            else:
                yield _Part("comment", last, last, (selectors,))
        elif token.type == tokenize.NEWLINE and first is not None:
            yield _Part(kind, first, token.start[0], tuple(found))
            first, found = None, []
        elif token.type not in _LAYOUT_TOKENS and first is None:
            first = token.start[0]
            kind = "decorator" if token.string == "@" else "statement"
    if first is not None:
        yield _Part(kind, first, last, tuple(found))


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _selectors(comment: tokenize.TokenInfo) -> tuple[Selector, ...]:
    match = IGNORE.search(comment.string)
    return () if match is None else _said(match, *comment.start)


def _said(match: re.Match[str], line: int, offset: int) -> tuple[Selector, ...]:
    """The selectors of a comment in a line; `offset` leads from places of the match to columns."""
    start = match.start("selectors") + offset
    return tuple(
        Selector(word[0].strip(), line, start + word.start() + 1)
        for word in re.finditer(r"[^,\s][^,]*", match["selectors"])
    )
