"""Which hints does a file have, when most of it is as it was a keystroke ago?

    Hinting().hints(analysis, groups, kinds)  =  hints(analysis, all facts of `groups`, kinds)

What a hint says comes from what stands around its line. So the hints of a definition are kept for
as long as what was read of it, what is known of it, and its lines stay the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.inlay_hints import hints
from tilelang_lsp.model import Analysis, Fact, Hint, HintKind, Part, Symbol

# A header may end as many lines below: they take part in the hint.
MORE_LINES = 12
Facts: TypeAlias = tuple[Fact, ...]
Range: TypeAlias = tuple[int, int]
OUTSIDE = -1  # of all definitions that hold kernels


@dataclass(frozen=True, slots=True)
class _Kept:
    """The hints of one definition, and what they were made of."""

    part: Part
    facts: tuple[Facts, ...]
    lines: tuple[str, ...]
    at: Range
    kinds: Collection[HintKind]
    hints: tuple[Hint, ...]

    def holds(self, other: _Kept) -> bool:
        return (
            self.part is other.part and self.at == other.at and self.kinds == other.kinds
            and _same(self.facts, other.facts) and self.lines == other.lines
        )  # fmt: skip


class Hinting:
    """The hints of one file, version after version."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._split: dict[int, tuple[Facts, tuple[Range, ...], dict[int, Facts]]] = {}
        self.made = 0  # definitions whose hints were made anew

    def hints(
        self, analysis: Analysis, groups: Iterable[Facts], kinds: Collection[HintKind]
    ) -> tuple[Hint, ...]:
        """All hints, in order; facts of `groups` come before those of the analysis itself."""
        groups = tuple(groups)
        ranges = _ranges(analysis)
        if ranges is None:
            return hints(analysis, (f for facts in groups for f in facts), kinds)
        names = sorted(ranges, key=ranges.__getitem__)
        places = tuple(ranges[name] for name in names)
        parts = dict(analysis.parts)
        told = self._by_place(groups, places)
        read = self._by_place([part.facts for part in parts.values()], places)
        lines = split_lines(analysis.text)
        found: list[Hint] = []
        kept: dict[str, _Kept] = {}
        for number, name in enumerate(names):
            first, last = at = places[number]
            around = lines[first - 1 : last + MORE_LINES]
            facts = (*told.get(number, ()), *read.get(number, ()))
            now = _Kept(parts[name], facts, around, at, kinds, ())
            before = self._kept.get(name)
            if before is None or not before.holds(now):
                self.made += 1
                one = Analysis(analysis.path, analysis.text, symbols=parts[name].symbols,
                               kernels=parts[name].kernels)  # fmt: skip
                made = hints(one, (f for group in facts for f in group), kinds)
                before = _Kept(parts[name], facts, around, at, kinds, made)
            kept[name] = before
            found += before.hints
        self._kept = kept
        outside = _outside(analysis, places)
        rest = hints(
            outside,
            (f for by in (told, read) for group in by.get(OUTSIDE, ()) for f in group), kinds,
        )  # fmt: skip
        return _in_order(found, rest)

    def _by_place(
        self, groups: Iterable[Facts], places: tuple[Range, ...]
    ) -> dict[int, list[Facts]]:
        """Facts by the definition they lie in: of each group in turn."""
        split: dict[int, tuple[Facts, tuple[Range, ...], dict[int, Facts]]] = {}
        found: dict[int, list[Facts]] = {}
        for facts in groups:
            known = self._split.get(id(facts))
            if known is None or known[0] is not facts or known[1] != places:
                known = facts, places, _split(facts, places)
            split[id(facts)] = known
            for number, inside in known[2].items():
                found.setdefault(number, []).append(inside)
        self._split = {**self._split, **split} if len(self._split) < 4 * len(places) else split
        return found


def _ranges(analysis: Analysis) -> dict[str, Range] | None:
    """The lines of each part; None where parts are no definitions apart from each other."""
    found: dict[str, Range] = {}
    names = {name for name, _ in analysis.parts}
    for top in analysis.outline:
        if top.name in names:
            if top.name in found:
                return None
            found[top.name] = (top.whole.line, top.whole.end_line)
    if len(found) < len(names):
        return None
    for name, part in analysis.parts:
        first, last = found[name]
        if any(first <= s.span.line <= last and _is_drawn(s) for s in part.shared):
            return None
    return found


def _is_drawn(symbol: Symbol) -> bool:
    """Whether a binding may have a hint; the name of the definition itself has none."""
    return bool(symbol.detail) and symbol.kind != "function"


def _split(facts: Facts, places: tuple[Range, ...]) -> dict[int, Facts]:
    found: dict[int, list[Fact]] = {}
    starts = [first for first, _ in places]
    for fact in facts:
        number = _number(fact.span.line, starts, places)
        found.setdefault(number, []).append(fact)
    return {number: tuple(inside) for number, inside in found.items()}


def _number(line: int, starts: list[int], places: tuple[Range, ...]) -> int:
    at = bisect_right(starts, line) - 1
    return at if at >= 0 and line <= places[at][1] else OUTSIDE


def _outside(analysis: Analysis, places: tuple[Range, ...]) -> Analysis:
    """What an analysis says of lines in no part."""
    starts = [first for first, _ in places]
    symbols = tuple(
        s for s in analysis.symbols if _number(s.span.line, starts, places) == OUTSIDE
    )  # fmt: skip
    return Analysis(analysis.path, analysis.text, symbols=symbols)


def _in_order(inside: list[Hint], outside: tuple[Hint, ...]) -> tuple[Hint, ...]:
    if not outside:
        return tuple(inside)
    return tuple(sorted((*inside, *outside), key=lambda h: h.line))


def _same(left: tuple[Facts, ...], right: tuple[Facts, ...]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
