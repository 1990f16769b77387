"""What does the file say once a fix is applied?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from tilelang_diagnostics.model import Edit


class OverlappingEdits(ValueError):
    """Two edits want to replace the same text, so applying both has no meaning."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with all `edits` (of one file) applied at once. Positions refer to `text`."""
    starts = _line_starts(text)
    ranges = sorted(
        (
            _offset(text, starts, edit.span.line, edit.span.column),
            _offset(text, starts, edit.span.end_line, edit.span.end_column),
            edit.text,
        )
        for edit in dict.fromkeys(edits)
    )
    pieces: list[str] = []
    done = 0
    for start, end, replacement in ranges:
        if start < done:
            raise OverlappingEdits(f"edits overlap at offset {start}")
        pieces += (text[done:start], replacement)
        done = end
    return "".join((*pieces, text[done:]))


def _line_starts(text: str) -> tuple[int, ...]:
    """Offset of each line; the line ends are those of `sources.split_lines`."""
    ends = text.replace("\r\n", "\0\n").replace("\r", "\n").split("\n")
    return tuple(accumulate((len(line) + 1 for line in ends), initial=0))[:-1]


def _offset(text: str, starts: tuple[int, ...], line: int, column: int) -> int:
    """Offset of a position, clamped into its line."""
    if line > len(starts):
        return len(text)
    start = starts[line - 1]
    end = starts[line] - 1 if line < len(starts) else len(text)
    if end > start and text[end - 1 : end + 1] == "\r\n":
        end -= 1
    return min(start + column - 1, end)
