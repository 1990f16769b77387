"""What did somebody change in a saved file of IR, and where in it is a place of Python?

Only what the lines say counts, not what stands behind them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from tilelang.ir.text_file import MARK, Comments
from tilelang_diagnostics import Span

_WORD: Final = re.compile(r"[\w.]")
_ASIDE: Final = re.compile(r"# (tilelang IR \d|file |p\d|after )")
_MOST_TRIED: Final = 12


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: where it is now, and the whole text without it."""

    span: Span
    undone: str


def edits_of(original: str, edited: str, file: str) -> tuple[Edit, ...]:
    """The changes that made `edited`, the text of `file`, out of `original`."""
    old, new = original.splitlines(), edited.splitlines()
    matcher = SequenceMatcher(None, [code(x) for x in old], [code(x) for x in new], autojunk=False)
    found: list[Edit] = []

    def undo(first: int, end: int, lines: Sequence[str]) -> str:
        return "\n".join([*new[:first], *lines, *new[end:]]) + "\n"

    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal" or not any(code(x) for x in (*old[i:i_end], *new[j:j_end])):
            continue
        if i_end - i == j_end - j:
            for before, at in zip(range(i, i_end), range(j, j_end), strict=True):
                span = _changed(code(old[before]), new[at], file, at + 1)
                found.append(Edit(span, undo(at, at + 1, [old[before]])))
        else:
            at = j if j < len(new) and code(new[j]) else max(j - 1, 0)
            found.append(Edit(line_span(new[at], file, at + 1), undo(j, j_end, old[i:i_end])))
    return tuple(found)


def guilty(edits: Sequence[Edit], fails: Callable[[str], bool]) -> Edit | None:
    """The change without which what `fails` does not: the first one if no single one is that."""
    if len(edits) > 1:
        for edit in edits[:_MOST_TRIED]:
            if not fails(edit.undone):
                return edit
    return edits[0] if edits else None


def place_in(
    span: Span | None, comments: Comments, lines: Sequence[str], file: str, edits: Sequence[Edit]
) -> Span | None:
    """Where in the file a place of Python is: at a change of such a line, else at the first one."""
    if span is None or span.file == file:
        return span
    at: Span | None = None
    found: list[int] = []
    for number, line in enumerate(lines, 1):
        place = comments.places.get(number)
        at = place.span if place is not None else at
        sites = comments.sites.get(number, ())
        if code(line).strip() and (at == span or any(site.span == span for site in sites)):
            found.append(number)
    for edit in edits:
        if edit.span.line in found:
            return edit.span
    return line_span(lines[found[0] - 1], file, found[0]) if found else None


def code(line: str) -> str:
    """What a line says of the program."""
    return "" if _ASIDE.match(line) else line.split(f"  {MARK}")[0].rstrip()


def line_span(line: str, file: str, number: int) -> Span:
    """What a line says, without the spaces before."""
    text = code(line)
    start = len(text) - len(text.lstrip()) + 1
    return Span(file, number, start, number, max(start + 1, len(text) + 1))


def _changed(old: str, line: str, file: str, number: int) -> Span:
    """The words of a line that are not those of `old`."""
    new = code(line)
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    left = most - start
    same = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    end = len(new) - same
    while start > 0 and _WORD.match(new[start - 1]) and (start < end or start < len(new)):
        start -= 1
    while end < len(new) and _WORD.match(new[end]):
        end += 1
    return Span(file, number, start + 1, number, max(end, start + 1) + 1)
