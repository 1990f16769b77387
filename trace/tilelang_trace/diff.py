"""What did a pass change? Lines that went, came, moved or were renamed, with a few around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from tilelang_trace.model import Line, Step
from tilelang_trace.structure import Match, Structure, structure, word_changes

# `<` moved away from here, `>` moved here, `~` renamed or changed in place.
Sign = Literal[" ", "-", "+", "<", ">", "~"]
_SIGNS: dict[str, Sign] = {"renamed": "~", "moved": ">", "changed": "+", "new": "+", "kept": " "}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a difference. `line` carries its Python place; `words` are the ranges of
    characters that differ from what it was or becomes."""

    sign: Sign
    line: Line
    words: tuple[tuple[int, int], ...] = ()


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
    """All changes between two steps; `structure` says what became of each statement."""

    hunks: tuple[Hunk, ...]
    structure: Structure | None = None

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


def difference(
    before: Step, after: Step, context: int = 3, *, by_structure: bool = False
) -> Difference:
    """What turned the text of `before` into that of `after`; `by_structure` tells what moved and
    what was renamed from what went and came."""
    old, new = [x.text for x in before.lines], [x.text for x in after.lines]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    found = structure(before, after) if by_structure else None
    signs = _Signs(before, after, found)
    hunks = []
    for group in matcher.get_grouped_opcodes(context):
        rows = tuple(_rows(group, signs))
        first, last = group[0], group[-1]
        hunks.append(
            Hunk((first[1] + 1, last[2] - first[1]), (first[3] + 1, last[4] - first[3]), rows)
        )
    return Difference(tuple(hunks), found)


class _Signs:
    """Rows of lines, with what became of their statements where that is known."""

    def __init__(self, before: Step, after: Step, found: Structure | None) -> None:
        self.before, self.after = before, after
        self._old: dict[int, Match] = {} if found is None else found.of_old()
        self._new: dict[int, Match] = {} if found is None else found.of_new()

    def gone(self, n: int) -> Row | None:
        """The row of a line of the program before; none if its statement is shown as renamed."""
        line, match = self.before.lines[n], self._old.get(n)
        if match is None or match.new is None or match.fate == "kept":
            return Row("-", line)
        if match.fate == "renamed":
            return None
        if match.fate == "moved":
            return Row("<", line)
        words, _ = word_changes(line.text, self.after.lines[match.new].text)
        return Row("-", line, tuple(words))

    def come(self, n: int) -> Row:
        """The row of a line of the program after."""
        line, match = self.after.lines[n], self._new.get(n)
        if match is None or match.old is None or match.fate == "kept":
            return Row("+", line)
        if match.fate == "moved":
            return Row(">", line)
        _, words = word_changes(self.before.lines[match.old].text, line.text)
        return Row(_SIGNS[match.fate], line, tuple(words))


def _rows(group: list[tuple[str, int, int, int, int]], signs: _Signs) -> Iterator[Row]:
    for kind, i, i_end, j, j_end in group:
        if kind == "equal":
            yield from (Row(" ", line) for line in signs.after.lines[j:j_end])
        else:
            yield from (row for n in range(i, i_end) if (row := signs.gone(n)) is not None)
            yield from (signs.come(n) for n in range(j, j_end))


def _range(lines: tuple[int, int]) -> str:
    """A range as unified diffs write it: an empty one stands behind the line before."""
    first, count = lines
    if count == 1:
        return str(first)
    return f"{first - 1 if count == 0 else first},{count}"
