"""Which lines of a definition say something to Python, and where do they stand?

    def kernel(A):          0
                            an empty line, for what comes next: Python sees nothing new
        # Rows first.       nor here
        x = A[0]            3

Who types makes such lines all the time; what was read of the definition only moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilelang_diagnostics import Diagnostic
from tilelang_lsp.model import Part
from tilelang_lsp.moves import Moves, Placed, Tops

_QUOTES = '"' * 3


@dataclass(frozen=True, slots=True)
class Code:
    """The lines that say something, without white space behind them, and their numbers from 0."""

    said: str
    numbers: tuple[int, ...]


@lru_cache(maxsize=256)
def code_of(text: str) -> Code:
    """The lines of a text; where it is unclear which say something, all as they are."""
    lines = text.split("\n")
    verbatim = _verbatim(text)
    kept = {
        number: line if number in verbatim else line.rstrip()
        for number, line in enumerate(lines)
        if number in verbatim or (line.strip() and not line.lstrip().startswith("#"))
    }
    return Code("\n".join(kept.values()), tuple(kept))


def _verbatim(text: str) -> range:
    """The lines in which an empty one may say something: those of a string over several lines.

    Of strings only a docstring is told apart from what may stand in others, or in comments.
    """
    if _QUOTES not in text and "'''" not in text and "\\\n" not in text:
        return range(0)
    start = text.find(_QUOTES)
    if text.count(_QUOTES) == 2 and "'''" not in text and "\\\n" not in text:
        first = text.count("\n", 0, start)
        if not text[text.rfind("\n", 0, start) + 1 : start].strip():
            return range(first, text.count("\n", 0, text.rfind(_QUOTES)) + 1)
    return range(text.count("\n") + 1)


def moved(
    placed: Placed[Part], old: Code, new: Code, at: int, tops: Tops, path: str
) -> Placed[Part] | None:  # fmt: skip
    """What was read of the statement with number `at`, when its code was laid out like `old`; None
    where a fix may take in lines that came or went."""
    if old.numbers == new.numbers:
        return placed
    if any(map(_has_long_fix, placed.what.diagnostics)):
        return None
    moves = Moves(_marks(placed.tops, at, old), _marks(tops, at, new), path)
    return Placed(moves.part(placed.what), tops)


def _marks(tops: Tops, at: int, code: Code) -> Tops:
    return (*tops[:at], *(tops[at] + number for number in code.numbers), *tops[at + 1 :])


def _has_long_fix(found: Diagnostic) -> bool:
    return any(e.span.line != e.span.end_line for fix in found.fixes for e in fix.edits)
