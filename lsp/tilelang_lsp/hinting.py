"""Which hints does a file have, when most of it is as it was a keystroke ago?

    Hinting().hints(reading, groups, kinds)  =  hints(its analysis, all facts of `groups`, kinds)

What a hint says comes from what stands around its line. So the hints of a definition are kept for
as long as what was read of it, what is known of it, and its text stay the same; where it stands
now, they are moved to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.assembly import Reading
from tilelang_lsp.features.inlay_hints import LONGEST_HEADER, hints, hints_of, is_drawn
from tilelang_lsp.model import Fact, Hint, HintKind, Outline, Part, Symbol
from tilelang_lsp.moves import Moves, Placed, Tops

Facts: TypeAlias = tuple[Fact, ...]
OUTSIDE = -1  # of all definitions that hold kernels


@dataclass(frozen=True, slots=True)
class _Kept:
    """The hints of one definition, and what they were made of."""

    part: Placed[Part]
    facts: tuple[Placed[Facts], ...]
    lines: tuple[str, ...]
    kinds: Collection[HintKind]
    hints: Placed[tuple[Hint, ...]]

    def holds(self, other: _Kept) -> bool:
        return (
            self.part is other.part and self.kinds == other.kinds
            and len(self.hints.tops) == len(other.hints.tops)
            and len(self.facts) == len(other.facts)
            and all(a.what is b.what for a, b in zip(self.facts, other.facts, strict=True))
            and self.lines == other.lines
        )  # fmt: skip


class Hinting:
    """The hints of one file, version after version."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._split: dict[int, tuple[Facts, Mapping[int, Placed[Facts]]]] = {}
        self.made = 0  # definitions whose hints were made anew

    def hints(
        self, reading: Reading, groups: Iterable[Placed[Facts]], kinds: Collection[HintKind]
    ) -> tuple[Hint, ...]:
        """All hints, in order; facts of `groups` come before those that were read."""
        groups = tuple(groups)
        tops, path = reading.head.tops, reading.path
        places = _places(reading)
        if places is None:
            return hints(reading.analysis, _moved(groups, tops, path), kinds)
        numbers = frozenset(places.values())
        groups = tuple(g for g in groups if len(g.tops) == len(tops))
        read = (Placed(p.what.facts, p.tops) for p in reading.parts.values())
        told = self._by_place((*groups, *read), numbers)
        lines = split_lines(reading.text)
        found: list[Hint] = []
        kept: dict[str, _Kept] = {}
        for node in reading.head.outline:
            if node.name not in places:
                continue
            part = reading.parts[node.name]
            around = lines[node.whole.line - 1 : node.whole.end_line + LONGEST_HEADER]
            facts = tuple(told.get(places[node.name], ()))
            now = _Kept(part, facts, around, kinds, Placed((), tops))
            before = self._kept.get(node.name)
            if before is not None and before.holds(now):
                inside = _still(before.hints, tops, path)
            else:
                self.made += 1
                moved, known = reading.moved(part), _moved(facts, tops, path)
                inside = hints_of(lines, moved.symbols, moved.kernels, known, kinds)
            kept[node.name] = _Kept(part, facts, around, kinds, Placed(inside, tops))
            found += inside
        self._kept = kept
        return _in_order(found, self._outside(reading, lines, told, kinds))

    def _by_place(
        self, groups: Iterable[Placed[Facts]], numbers: Collection[int]
    ) -> dict[int, list[Placed[Facts]]]:
        """Facts by the definition they lie in: of each group in turn."""
        split: dict[int, tuple[Facts, Mapping[int, Placed[Facts]]]] = {}
        found: dict[int, list[Placed[Facts]]] = {}
        for group in groups:
            known = self._split.get(id(group.what))
            if known is None or known[0] is not group.what:
                known = group.what, _split(group)
            split[id(group.what)] = known
            for number, inside in known[1].items():
                at = number if number in numbers else OUTSIDE
                found.setdefault(at, []).append(inside)
        self._split = split
        return found

    def _outside(
        self, reading: Reading, lines: tuple[str, ...], told: Mapping[int, list[Placed[Facts]]],
        kinds: Collection[HintKind],
    ) -> tuple[Hint, ...]:  # fmt: skip
        """The hints of lines in no definition with kernels."""
        tops, path = reading.head.tops, reading.path
        shared: dict[tuple[str, Span], Symbol] = {}  # of each binding, the first that knows it
        facts = _moved(told.get(OUTSIDE, ()), tops, path)
        for placed in reading.parts.values():
            moves = Moves(placed.tops, tops, path)
            for symbol in filter(_is_known, placed.what.shared):
                shared.setdefault((symbol.name, moves.span(symbol.span)), symbol)
        drawn = [replace(s, span=span) for (_, span), s in shared.items() if is_drawn(s)]
        return hints_of(lines, drawn, (), facts, kinds) if drawn or facts else ()


def _places(reading: Reading) -> dict[str, int] | None:
    """Which statement at the top each part is; None where parts are not apart from each other."""
    tops = reading.head.tops
    found: dict[str, int] = {}
    nodes: list[Outline] = [n for n in reading.head.outline if n.name in reading.parts]
    for node in nodes:
        if node.name in found:
            return None
        found[node.name] = bisect_right(tops, node.whole.line) - 1
    if len(found) < len(reading.parts) or len(set(found.values())) < len(found):
        return None
    for name, placed in reading.parts.items():
        if len(placed.tops) != len(tops):
            return None
        first = placed.tops[found[name]]
        last = first + _length(nodes, name)
        if any(first <= s.span.line <= last and _is_known(s) for s in placed.what.shared):
            return None
    return found


def _length(nodes: Iterable[Outline], name: str) -> int:
    node = next(n for n in nodes if n.name == name)
    return node.whole.end_line - node.whole.line


def _is_known(symbol: Symbol) -> bool:
    """Whether more is said of a binding than its name; a definition says it itself."""
    return bool(symbol.detail) and symbol.kind != "function"


def _split(group: Placed[Facts]) -> dict[int, Placed[Facts]]:
    """Those that are drawn, by the statement at the top that they lie in."""
    found: dict[int, list[Fact]] = {}
    for fact in group.what:
        if fact.label:
            found.setdefault(_number(fact, group.tops), []).append(fact)
    return {number: Placed(tuple(inside), group.tops) for number, inside in found.items()}


def _number(fact: Fact, tops: Tops) -> int:
    return bisect_right(tops, fact.span.line) - 1


def _moved(groups: Iterable[Placed[Facts]], tops: Tops, path: str) -> Facts:
    """All facts where they are now."""
    return tuple(
        fact for group in groups for fact in map(Moves(group.tops, tops, path).fact, group.what)
    )


def _still(placed: Placed[tuple[Hint, ...]], tops: Tops, path: str) -> tuple[Hint, ...]:
    """Hints of before where they are now."""
    moves = Moves(placed.tops, tops, path)
    return tuple(map(moves.hint, placed.what)) if moves.any else placed.what


def _in_order(inside: list[Hint], outside: tuple[Hint, ...]) -> tuple[Hint, ...]:
    if not outside:
        return tuple(inside)
    return tuple(sorted((*inside, *outside), key=lambda h: h.line))
