"""What is around a line, by its indentation, and whose bodies stayed when it came or went?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tilelang_trace.model import Line

_LONGEST: Final = 60  # of a head as it is quoted
_BRANCHES: Final = ("else:", "} else {")


@dataclass(frozen=True, slots=True)
class Body:
    """Lines that are still there, deeper or less deep, since the line `head` came or went.

    `at` is the number of that line, from 0, in the program before or after.
    """

    is_removed: bool
    at: int
    head: str
    lines: int

    @property
    def said(self) -> str:
        """As it is told at the head."""
        many = f"{self.lines} line{'' if self.lines == 1 else 's'}"
        if self.is_removed:
            return f"body of the removed `{self.head}` kept: {many}, dedented"
        return f"body of the new `{self.head}` was there before: {many}, indented"


def indent(line: Line) -> int:
    """How many characters a line is indented by."""
    return len(line.text) - len(line.text.lstrip())


def parents(lines: Sequence[Line]) -> list[int]:
    """For each line the number of the one whose body it is in; -1 for none."""
    found: list[int] = []
    open_heads: list[int] = []
    for number, line in enumerate(lines):
        while open_heads and indent(lines[open_heads[-1]]) >= indent(line):
            open_heads.pop()
        found.append(open_heads[-1] if open_heads else -1)
        if line.text.strip():
            open_heads.append(number)
    return found


def around(parent: Sequence[int], number: int) -> list[int]:
    """All that is around a line, from the inside."""
    found = []
    while (number := parent[number]) >= 0:
        found.append(number)
    return found


def bodies(
    lines: Sequence[Line], heads: Collection[int | None], shifted: Sequence[int | None],
    are_removed: bool,
) -> Iterator[Body]:  # fmt: skip
    """One for each of `heads` that has some of `shifted` in its body."""
    parent = parents(lines)
    counted: Counter[int] = Counter()
    for number in shifted:
        if number is not None:
            counted.update(n for n in around(parent, number) if n in heads)
    for at in sorted(counted):
        yield Body(are_removed, at, _head(lines, at), counted[at])


def _head(lines: Sequence[Line], at: int) -> str:
    """`for k in T.serial(1)`, `else` of `if k < 4`."""
    text = lines[at].text.strip()
    if text in _BRANCHES:
        level = indent(lines[at])
        first = next((x for x in reversed(lines[:at]) if indent(x) == level), None)
        return "else" if first is None else f"else` of `{_short(first.text.strip())}"
    return _short(text)


def _short(text: str) -> str:
    bare = text.removesuffix("{").removesuffix(":").rstrip()
    return bare if len(bare) <= _LONGEST else f"{bare[:_LONGEST]}…"
