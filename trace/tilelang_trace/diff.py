"""What did a pass change? Lines that went and came, with a few around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from tilelang_trace.model import Line, Step

Sign = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a difference: kept, gone or new. `line` carries its Python place."""

    sign: Sign
    line: Line


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changes. Line numbers count from 1; `before` and `after` are (first, count)."""

    before: tuple[int, int]
    after: tuple[int, int]
    rows: tuple[Row, ...]

    @property
    def header(self) -> str:
        """`@@ -12,4 +12,9 @@`, as unified diffs have it."""
        return f"@@ -{_range(self.before)} +{_range(self.after)} @@"


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes between two steps."""

    hunks: tuple[Hunk, ...]

    @property
    def added(self) -> int:
        """How many lines are new."""
        return self._count("+")

    @property
    def removed(self) -> int:
        """How many lines went."""
        return self._count("-")

    def __bool__(self) -> bool:
        return bool(self.hunks)

    def _count(self, sign: Sign) -> int:
        return sum(row.sign == sign for hunk in self.hunks for row in hunk.rows)


def difference(before: Step, after: Step, context: int = 3) -> Difference:
    """What turned the text of `before` into that of `after`."""
    old, new = [x.text for x in before.lines], [x.text for x in after.lines]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    hunks = []
    for group in matcher.get_grouped_opcodes(context):
        rows = tuple(_rows(group, before, after))
        first, last = group[0], group[-1]
        hunks.append(
            Hunk((first[1] + 1, last[2] - first[1]), (first[3] + 1, last[4] - first[3]), rows)
        )
    return Difference(tuple(hunks))


def _rows(group: list[tuple[str, int, int, int, int]], before: Step, after: Step) -> Iterator[Row]:
    for kind, i, i_end, j, j_end in group:
        if kind == "equal":
            yield from (Row(" ", line) for line in after.lines[j:j_end])
        else:
            yield from (Row("-", line) for line in before.lines[i:i_end])
            yield from (Row("+", line) for line in after.lines[j:j_end])


def _range(lines: tuple[int, int]) -> str:
    """A range as unified diffs write it: an empty one stands behind the line before."""
    first, count = lines
    if count == 1:
        return str(first)
    return f"{first - 1 if count == 0 else first},{count}"
