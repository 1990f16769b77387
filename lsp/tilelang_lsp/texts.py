"""What does a text say after an edit of the editor's? Its places may lie behind the end of a line
or of the text; lines end where LSP and Python say, which is not everywhere `splitlines` does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from lsprotocol import types as lsp

Change: TypeAlias = (
    lsp.TextDocumentContentChangePartial | lsp.TextDocumentContentChangeWholeDocument
)
_MARK = "\ufeff"
_HALF = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")


def edited(text: str, changes: Sequence[Change], encoding: str) -> str:
    """The text after changes, each of which is about the text after the one before."""
    for change in changes:
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            first = offset_of(text, change.range.start, encoding)
            last = offset_of(text, change.range.end, encoding)
            start, end = min(first, last), max(first, last)
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return text


def readable(text: str) -> str:
    """The text as Python reads it from the disk; every character stays where it is.

    A mark of the byte order is no part of it, a form feed at the start does nothing. Half of a
    character that UTF-16 writes as two is written as U+FFFD.
    """
    if text.startswith(_MARK):
        text = f"\f{text[1:]}"
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def offset_of(text: str, place: lsp.Position, encoding: str) -> int:
    """How many characters stand before a place; one behind the end of its line counts as that."""
    start, plain = 0, "\r" not in text
    for _ in range(place.line):
        _, following = _line(text, start, plain)
        if following is None:
            return len(text)
        start = following
    end, _ = _line(text, start, plain)
    return start + characters(text[start:end], place.character, encoding)


def _line(text: str, start: int, plain: bool) -> tuple[int, int | None]:
    """The end of the line that begins at `start`, and the start of the next, if there is one;
    `plain` says that all lines end as on Unix, which is found ten times as fast."""
    if plain:
        end = text.find("\n", start)
        return (len(text), None) if end < 0 else (end, end + 1)
    found = _LINE_END.search(text, start)
    return (len(text), None) if found is None else found.span()


def characters(line: str, units: int, encoding: str) -> int:
    """How many characters of a line take up so many units of the editor's; at most all."""
    if line.isascii():
        return min(units, len(line))
    for count, character in enumerate(line):
        if units <= 0:
            return count
        units -= units_of(character, encoding)
    return len(line)


def units_of(character: str, encoding: str) -> int:
    """How long a character is to the editor."""
    match encoding:
        case "utf-8":
            return len(character.encode("utf-8", "surrogatepass"))
        case "utf-32":
            return 1
        case _:
            return 2 if ord(character) > 0xFFFF else 1
