"""How wide is this text on a terminal, and what part of it fits?

Only here does the package know about tabs, wide characters and control characters.
"""

from __future__ import annotations

import textwrap
import unicodedata
from dataclasses import dataclass

TAB_WIDTH = 4
ELLIPSIS = "…"


def cell_width(text: str) -> int:
    """Terminal cells `text` takes (CJK and emoji take two, combining marks none)."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


@dataclass(frozen=True, slots=True)
class Displayed:
    """A source line as shown: printable text, and the cell at which each code point starts.

    `cells` has one entry more than the line has code points: the cell after the end.
    """

    text: str
    cells: tuple[int, ...]

    def cell(self, column: int) -> int:
        """The cell of a 1-based column; a column beyond the line is at its end."""
        return self.cells[min(column - 1, len(self.cells) - 1)]


def display(line: str) -> Displayed:
    """Expand tabs and make control characters visible."""
    if line.isascii() and line.isprintable():
        return Displayed(line, tuple(range(len(line) + 1)))
    shown: list[str] = []
    cells = [0]
    at = 0
    for char in line:
        piece = " " * (TAB_WIDTH - at % TAB_WIDTH) if char == "\t" else _printable(char)
        shown.append(piece)
        # The width of a prefix, not the sum of widths: joined emoji are one glyph.
        at = at + len(piece) if piece.isascii() else cell_width("".join(shown))
        cells.append(at)
    return Displayed("".join(shown), tuple(cells))


def _printable(char: str) -> str:
    if char == "\x7f":
        return "\u2421"
    if char < " ":
        return chr(0x2400 + ord(char))
    # Bidirectional controls could make the excerpt read differently from what is compiled.
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cf") and char != "\u200d" else char


def clip(text: str, start: int, width: int) -> str:
    """The cells `[start, start + width)` of `text`, with an ellipsis where text is cut off."""
    total = cell_width(text)
    if start == 0 and total <= width:
        return text
    lead, tail = start > 0, total > start + width
    first, last = start + lead, start + width - tail
    kept: list[str] = []
    at = 0
    for char in text:
        size = cell_width(char)
        if first <= at and at + size <= last:
            kept.append(char)
        elif at < last and at + size > first:
            kept.append(" " * (min(at + size, last) - max(at, first)))
        at += size
    return (ELLIPSIS if lead else "") + "".join(kept) + (ELLIPSIS if tail else "")


def wrap(text: str, width: int) -> list[str]:
    """Break `text` into lines of at most `width` cells; indented lines (code) are kept whole."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        if paragraph[:1].isspace() or cell_width(paragraph) <= width:
            lines.append(paragraph)
        else:
            lines += _wrap_paragraph(paragraph, width)
    return lines


def _wrap_paragraph(text: str, width: int) -> list[str]:
    width = max(width, 8)
    if text.isascii():
        return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    lines: list[str] = []
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if line and cell_width(joined) > width:
            lines.append(line)
            line = word
        else:
            line = joined
    return [*lines, line]
