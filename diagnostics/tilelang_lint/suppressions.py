"""Which findings did the author switch off, and where?

    T.copy(A, B)  # tilelang: ignore[copy-not-vectorised] eight elements, once per launch

    # tilelang: ignore[TL306, TL601] the layout is fixed by the caller
    T.copy(A, B)

A comment at the end of a statement covers the whole statement, a comment on a line of its own the
statement that follows it (of a decorated function: up to its `def` line). Text after the bracket
is the reason, for people.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Diagnostic
from tilelang_lint.selection import matches

_COMMENT = re.compile(r"#\s*tilelang:\s*ignore\[(?P<selectors>[^\]]*)\]")
_LAYOUT_TOKENS = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


@dataclass(frozen=True, slots=True)
class Suppression:
    """Lines `first` to `last` give none of the selected findings."""

    first: int
    last: int
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All suppressions of one file."""

    entries: tuple[Suppression, ...] = ()

    def covers(self, diagnostic: Diagnostic, path: str) -> bool:
        """Whether a comment of this file switches `diagnostic` off. Our own failures stay."""
        span = diagnostic.span
        if span is None or span.file != path or diagnostic.code.startswith("TL9"):
            return False
        return any(
            entry.first <= span.line <= entry.last
            and any(matches(s, diagnostic.code) for s in entry.selectors)
            for entry in self.entries
        )


def suppressions_in(text: str) -> Suppressions:
    """The suppressions that comments of `text` ask for; a text that is no Python may have some."""
    if not _COMMENT.search(text):
        return Suppressions()
    entries: list[Suppression] = []
    waiting: list[tuple[str, ...]] = []  # own-line comments whose statement is still to come
    for line in _statements(text):
        for selectors in (*waiting, *line.selectors):
            entries.append(Suppression(line.first, line.last, selectors))
        waiting = [*waiting, *line.own_line] if line.decorator or line.is_comment else line.own_line
    return Suppressions(tuple(entries))


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement (or header of one), or a comment between statements."""

    first: int
    last: int
    selectors: tuple[tuple[str, ...], ...]
    own_line: list[tuple[str, ...]]
    is_comment: bool
    decorator: bool


def _statements(text: str) -> Iterator[_Statement]:
    """Statements and the comments between them, as far as the text can be read."""
    first: int | None = None
    decorator = False
    found: list[tuple[str, ...]] = []
    for token in _tokens(text):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            selectors = _selectors(token.string)
            if first is not None:
                found += [selectors] if selectors else []
            elif selectors:
                yield _Statement(line, line, (), [selectors], True, False)
        elif token.type == tokenize.NEWLINE and first is not None:
            yield _Statement(first, line, tuple(found), [], False, decorator)
            first, found = None, []
        elif token.type not in _LAYOUT_TOKENS and first is None:
            first, decorator = line, token.string == "@"
    if first is not None:
        yield _Statement(first, len(text.splitlines()) + 1, tuple(found), [], False, decorator)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _selectors(comment: str) -> tuple[str, ...]:
    match = _COMMENT.search(comment)
    if match is None:
        return ()
    return tuple(s.strip() for s in match["selectors"].split(",") if s.strip())
