"""Where are things after the text was edited? One edit between two texts, and what it moves.

Hints are shown again at once after each keystroke, moved along with the text, while the new text
is still being analysed: an editor that gets no hints would let them flicker.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilelang_diagnostics import Diagnostic, Label, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.model import Budget, Fact, Hint


@dataclass(frozen=True, slots=True)
class Change:
    """`[start, old_end)` became `[start, new_end)`; positions are (line, column), 1-based."""

    start: tuple[int, int]
    old_end: tuple[int, int]
    new_end: tuple[int, int]
    inserted: str = ""
    path: str = ""  # of the file; what lies in others stays

    def move(self, line: int, column: int) -> tuple[int, int] | None:
        """Where a position went, or None when the text around it was replaced."""
        place = (line, column)
        if place < self.start or (place == self.start and not self._pushes()):
            return place
        if place < self.old_end or (place == self.old_end and self.start != self.old_end
                                    and self.inserted[:1].isidentifier()):  # fmt: skip
            return None
        if line == self.old_end[0]:
            return self.new_end[0], self.new_end[1] + column - self.old_end[1]
        return line + self.new_end[0] - self.old_end[0], column

    def leaves(self, first: int, last: int) -> bool:
        """Whether all that stands on some lines stays where it is."""
        line = self.start[0]
        inline = line == self.old_end[0] == self.new_end[0]
        return last < line or (inline and first > line)

    def move_span(self, span: Span) -> Span | None:
        """Where a span went, or None when it, or a part of it, was replaced."""
        if self.leaves(span.line, span.end_line) or (self.path and span.file != self.path):
            return span
        start = self.move(span.line, span.column)
        end = self.move(span.end_line, span.end_column)
        if start is None or end is None or end < start:
            return None
        return Span(span.file, *start, *end)

    def _pushes(self) -> bool:
        """Whether text inserted right here goes before: it continues the name that ends here."""
        first = self.inserted[:1]
        return self.start == self.old_end and (first.isalnum() or first == "_")


def change_between(old: str, new: str) -> Change | None:
    """The smallest single edit that turns `old` into `new`; None when they are equal."""
    if old == new:
        return None
    before, after = split_lines(old), split_lines(new)
    shorter = min(len(before), len(after))
    head = common(before, after, shorter)
    tail = common(before[::-1], after[::-1], shorter - head)
    # The first and last lines that differ; one side may have none left.
    old_part = "\n".join(before[head : len(before) - tail])
    new_part = "\n".join(after[head : len(after) - tail])
    if head + tail in (len(before), len(after)):
        # Whole lines went or came: the edit runs to the start of the next line.
        inserted = f"{new_part}\n" if head + tail < len(after) else ""
        return Change(
            (head + 1, 1), (len(before) - tail + 1, 1), (len(after) - tail + 1, 1), inserted
        )
    start = common(old_part, new_part, min(len(old_part), len(new_part)))
    room = min(len(old_part), len(new_part)) - start
    end = common(old_part[::-1], new_part[::-1], room)
    return Change(
        _position(old_part, start, head),
        _position(old_part, len(old_part) - end, head),
        _position(new_part, len(new_part) - end, head),
        new_part[start : len(new_part) - end],
    )


def move_hints(hints: Sequence[Hint], change: Change) -> tuple[Hint, ...]:
    """The hints whose text is still there, where it is now; they are in order of their lines."""
    first = bisect_left(hints, change.start[0], key=lambda h: h.line)
    touched, behind = hints[first:], hints[len(hints) :]
    if change.start[0] == change.old_end[0] == change.new_end[0]:
        last = bisect_right(hints, change.start[0], first, key=lambda h: h.line)
        touched, behind = hints[first:last], hints[last:]
    moved: list[Hint] = []
    for hint in touched:
        place = change.move(hint.line, hint.column)
        if place is not None:
            moved.append(replace(hint, line=place[0], column=place[1]))
    return (*hints[:first], *moved, *behind)


def move_facts(facts: Iterable[Fact], change: Change) -> tuple[Fact, ...]:
    """The facts whose place is still there, where it is now."""
    moved: list[Fact] = []
    for fact in facts:
        span = change.move_span(fact.span)
        cause = None if fact.cause is None else change.move_span(fact.cause)
        if span is fact.span and cause is fact.cause:
            moved.append(fact)
        elif span is not None:
            moved.append(replace(fact, span=span, cause=cause))
    return tuple(moved)


def move_budgets(budgets: Iterable[Budget], change: Change) -> tuple[Budget, ...]:
    """Budgets keep their numbers; what they point at moves."""
    return tuple(
        replace(b, shares=tuple(
            replace(s, span=s.span and change.move_span(s.span)) for s in b.shares
        ))
        for b in budgets
    )  # fmt: skip


def move_diagnostics(found: Iterable[Diagnostic], change: Change) -> tuple[Diagnostic, ...]:
    """The findings whose place is still there, where it is now; their fixes are of no more use."""
    moved: list[Diagnostic] = []
    for diagnostic in found:
        span = diagnostic.span and change.move_span(diagnostic.span)
        if span is None and diagnostic.span is not None:
            continue
        labels = tuple(
            Label(place, label.text) for label in diagnostic.labels
            if (place := change.move_span(label.span)) is not None
        )  # fmt: skip
        calls = tuple(
            replace(frame, span=place) for frame in diagnostic.calls
            if (place := change.move_span(frame.span)) is not None
        )  # fmt: skip
        if span is not None and change.path and span.file != change.path and not calls:
            continue  # in another file, and the call that leads there is gone
        moved.append(replace(diagnostic, span=span, labels=labels, fixes=(), calls=calls))
    return tuple(moved)


def common(left: tuple[str, ...] | str, right: tuple[str, ...] | str, limit: int) -> int:
    """How many leading items are equal, at most `limit`."""
    for index in range(limit):
        if left[index] != right[index]:
            return index
    return limit


def _position(part: str, offset: int, head: int) -> tuple[int, int]:
    """The position of an offset into lines that begin after line `head`."""
    line = part.count("\n", 0, offset)
    return head + line + 1, offset - (part.rfind("\n", 0, offset) + 1) + 1
