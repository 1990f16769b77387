"""What did a pass change? Lines that went, came, moved or were renamed, with a few around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from tilelang_trace.model import Line, Step
from tilelang_trace.structure import IN_ORDER, Match, Structure, line_changes, structure

# `<` moved away from here, `>` moved here, `~` renamed or changed in place, `⇤` dedented and `⇥`
# indented, `·` says what became of the body of the line above.
Sign = Literal[" ", "-", "+", "<", ">", "~", "⇤", "⇥", "·"]
QUIET: tuple[Sign, ...] = (" ", "⇤", "⇥")
_SIGNS: dict[str, Sign] = {
    "renamed": "~", "moved": ">", "changed": "+", "new": "+", "kept": " ", "dedented": "⇤",
    "indented": "⇥",
}  # fmt: skip


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


_Part: TypeAlias = "tuple[bool, range, range]"  # whether these lines are the same, but for indents


def difference(
    before: Step, after: Step, context: int = 3, *, by_structure: bool = False
) -> Difference:
    """What turned the text of `before` into that of `after`; `by_structure` tells what moved, was
    indented and was renamed from what went and came."""
    found = structure(before, after) if by_structure else None
    parts = _by_text(before, after) if found is None else aligned(found, before, after)
    rows = _Rows(before, after, found)
    hunks = tuple(_hunk(group, rows) for group in _groups(parts, context))
    return Difference(hunks, found)


def _by_text(before: Step, after: Step) -> Iterator[_Part]:
    old, new = [x.text for x in before.lines], [x.text for x in after.lines]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        yield kind == "equal", range(i, i_end), range(j, j_end)


def aligned(found: Structure, before: Step, after: Step) -> Iterator[_Part]:
    """The lines of both programs beside each other: what stayed, and what is between."""
    pairs = [
        (m.old, m.new) for m in found.matches
        if m.fate in IN_ORDER and m.old is not None and m.new is not None
    ]  # fmt: skip
    start = first = 0
    for old, new in _runs(pairs):
        if old.start > start or new.start > first:
            yield False, range(start, old.start), range(first, new.start)
        yield True, old, new
        start, first = old.stop, new.stop
    if len(before.lines) > start or len(after.lines) > first:
        yield False, range(start, len(before.lines)), range(first, len(after.lines))


def _runs(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[range, range]]:
    """Pairs that follow each other on both sides, as ranges."""
    begun = 0
    for n in range(1, len(pairs) + 1):
        old, new = pairs[n - 1]
        if n < len(pairs) and pairs[n] == (old + 1, new + 1):
            continue
        yield range(pairs[begun][0], old + 1), range(pairs[begun][1], new + 1)
        begun = n


def _groups(parts: Iterator[_Part], context: int) -> Iterator[list[_Part]]:
    """Changes with `context` lines around them, those that are near each other together."""
    group: list[_Part] = []
    changed = False
    for same, old, new in parts:
        if not same:
            group.append((same, old, new))
            changed = True
        elif changed and len(old) > 2 * context:
            yield [*group, (True, old[:context], new[:context])]
            group, changed = [(True, _last(old, context), _last(new, context))], False
        elif changed:
            group.append((same, old, new))
        else:
            group = [(True, _last(old, context), _last(new, context))]
    if changed:
        is_same, old, new = group[-1]
        yield [*group[:-1], (True, old[:context], new[:context])] if is_same else group


def _last(lines: range, many: int) -> range:
    return lines[max(len(lines) - many, 0) :]


def _hunk(group: Sequence[_Part], rows: _Rows) -> Hunk:
    old, new = [old for _, old, _ in group], [new for _, _, new in group]
    return Hunk(
        (old[0].start + 1, old[-1].stop - old[0].start),
        (new[0].start + 1, new[-1].stop - new[0].start),
        tuple(row for part in group for row in rows.of(part)),
    )


class _Rows:
    """Rows of lines, with what became of their statements where that is known."""

    def __init__(self, before: Step, after: Step, found: Structure | None) -> None:
        self.before, self.after = before, after
        self._old: dict[int, Match] = {} if found is None else found.of_old()
        self._new: dict[int, Match] = {} if found is None else found.of_new()
        bodies = () if found is None else found.bodies
        self._removed = {body.at: body.said for body in bodies if body.is_removed}
        self._come = {body.at: body.said for body in bodies if not body.is_removed}

    def of(self, part: _Part) -> Iterator[Row]:
        """The rows of lines that stayed, or of those that went and came; what was changed stands
        right before what became of it."""
        same, old, new = part
        if same:
            yield from map(self._same, new)
            return
        i, j = old.start, new.start
        for a, b in [*self._changed(old, new), (old.stop, new.stop)]:
            yield from (row for n in range(i, min(a + 1, old.stop)) for row in self._went(n))
            yield from (row for n in range(j, min(b + 1, new.stop)) for row in self._came(n))
            i, j = a + 1, b + 1

    def _changed(self, old: range, new: range) -> Iterator[tuple[int, int]]:
        """Lines that were changed and that became of them, in the order of both."""
        first = old.start
        for n in new:
            match = self._new.get(n)
            if match is None or match.old is None or match.fate not in ("changed", "renamed"):
                continue
            if first <= match.old < old.stop:
                yield match.old, n
                first = match.old + 1

    def _went(self, n: int) -> Iterator[Row]:
        row = self._gone(n)
        if row is not None:
            yield row
        if n in self._removed:
            yield Row("·", Line(self._removed[n]))

    def _came(self, n: int) -> Iterator[Row]:
        yield self._comes(n)
        if n in self._come:
            yield Row("·", Line(self._come[n]))

    def _same(self, n: int) -> Row:
        match = self._new.get(n)
        return Row(" " if match is None else _SIGNS[match.fate], self.after.lines[n])

    def _gone(self, n: int) -> Row | None:
        """The row of a line of the program before; none if its statement is shown as renamed."""
        line, match = self.before.lines[n], self._old.get(n)
        if match is None or match.new is None:
            return Row("-", line)
        if match.fate == "renamed":
            return None
        if match.fate == "moved":
            return Row("<", line)
        words, _ = line_changes(line.text, self.after.lines[match.new].text)
        return Row("-", line, tuple(words))

    def _comes(self, n: int) -> Row:
        """The row of a line of the program after."""
        line, match = self.after.lines[n], self._new.get(n)
        if match is None or match.old is None:
            return Row("+", line)
        if match.fate == "moved":
            return Row(">", line)
        _, words = line_changes(self.before.lines[match.old].text, line.text)
        return Row(_SIGNS[match.fate], line, tuple(words))


def _range(lines: tuple[int, int]) -> str:
    """A range as unified diffs write it: an empty one stands behind the line before."""
    first, count = lines
    if count == 1:
        return str(first)
    return f"{first - 1 if count == 0 else first},{count}"
