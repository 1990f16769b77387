"""What became of each statement? Kept, indented, moved, renamed, changed, gone or new.

Lines are matched first as they are, in order. What is the same but for its indentation was dedented
or indented, if what is around it is gone or new and all else around it was kept. Of the rest, one
that is the same somewhere else has moved; one of the same place in Python and the same shape, which
differs in names alone, was renamed; one of the same place and the same kind of statement was
changed. What is left is gone or new. Names count as renamed only if the whole pass renames them so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Final, Literal, TypeAlias

from tilelang_trace.model import Line, Step
from tilelang_trace.nesting import Body, around, bodies, indent, parents

Fate = Literal["kept", "dedented", "indented", "moved", "renamed", "changed", "gone", "new"]
# Those of lines that are where they were in the order of all.
IN_ORDER: Final = ("kept", "dedented", "indented")
_TOKEN: Final = re.compile(r"[A-Za-z_][\w.]*|\d[\w.]*|\s+|.")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_BOUND: Final = re.compile(r"\s*(\w+) = ")
_WORDS: Final = frozenset(
    {"for", "in", "if", "elif", "else", "while", "with", "as", "def", "return", "pass", "and",
     "or", "not"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """One statement: its lines, from 0, in the program before and after; one of them may lack."""

    fate: Fate
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True)
class Structure:
    """What became of all of them. `renames` are pairs of names, as often as they occur; `bodies`
    those whose loop, condition or frame came or went around them."""

    matches: tuple[Match, ...]
    renames: tuple[tuple[str, str], ...]
    bodies: tuple[Body, ...] = ()

    def count(self, fate: Fate) -> int:
        """How many statements have that fate."""
        return sum(m.fate == fate for m in self.matches)

    @property
    def changed(self) -> int:
        """How many statements are not what and where they were."""
        return sum(m.fate != "kept" for m in self.matches)

    def of_old(self) -> dict[int, Match]:
        """By line of the program before."""
        return {m.old: m for m in self.matches if m.old is not None}

    def of_new(self) -> dict[int, Match]:
        """By line of the program after."""
        return {m.new: m for m in self.matches if m.new is not None}

    def summary(self) -> str:
        """`2 dedented, 3 moved, 2 changed, +4 −1, i0_1 → i0`."""
        words: tuple[Fate, ...] = ("dedented", "indented", "moved", "renamed", "changed")
        parts = [f"{n} {word}" for word in words if (n := self.count(word))]
        new, gone = self.count("new"), self.count("gone")
        if new or gone:
            parts.append(f"+{new} −{gone}")
        shown = [f"{a} → {b}" for a, b in self.renames[:3]]
        more = len(self.renames) - len(shown)
        if shown:
            parts.append(", ".join(shown) + (f" and {more} more" if more > 0 else ""))
        return ", ".join(parts)


def structure(before: Step, after: Step) -> Structure:
    """What became of the statements of `before`."""
    return _Matcher(before.lines, after.lines).run()


_Ranges: TypeAlias = "tuple[int, int, int, int]"  # of old lines, then of new ones


class _Matcher:
    def __init__(self, old: Sequence[Line], new: Sequence[Line]) -> None:
        self.old, self.new = old, new
        self.matches: list[Match] = []
        self.old_left: list[int] = []
        self.new_left: list[int] = []

    def run(self) -> Structure:
        shifted = self._in_order()
        self._pair("moved", self._alike(lambda x: (x.span, x.calls, x.text.strip())))
        renames = self._renamed()
        self._same_kind()
        self.matches += [Match("gone", n, None) for n in self.old_left]
        self.matches += [Match("new", None, n) for n in self.new_left]
        self.matches += self._fates(shifted)
        key = lambda m: (  # noqa: E731
            m.new if m.new is not None else m.old or 0, m.new is None)  # fmt: skip
        pairs = [(m.old, m.new) for m in self.matches if m.fate in ("dedented", "indented")]
        gone = frozenset(m.old for m in self.matches if m.fate == "gone")
        come = frozenset(m.new for m in self.matches if m.fate == "new")
        return Structure(
            tuple(sorted(self.matches, key=key)), renames,
            (*bodies(self.old, gone, [a for a, _ in pairs], True),
             *bodies(self.new, come, [b for _, b in pairs], False)),
        )  # fmt: skip

    def _in_order(self) -> list[tuple[int, int]]:
        """Pairs what is the same and where it was in the order of all; those that differ in their
        indentation are given, and wait for what becomes of the others."""
        ranges: list[_Ranges] = [(0, len(self.old), 0, len(self.new))]
        pairs: list[tuple[int, int]] = []
        for key in (_itself, _but_for_indentation, _text):
            rest = []
            for found in ranges:
                for is_same, part in self._aligned(found, key):
                    if is_same:
                        pairs += zip(range(*part[:2]), range(*part[2:]), strict=True)
                    else:
                        rest.append(part)
            ranges = rest
        kept = [(a, b) for a, b in pairs if self.old[a].text == self.new[b].text]
        shifted = [(a, b) for a, b in pairs if self.old[a].text != self.new[b].text]
        self.old_left, self.new_left = [*range(len(self.old))], [*range(len(self.new))]
        self._pair("kept", kept)
        self._leave(shifted)
        return shifted

    def _aligned(
        self, within: _Ranges, key: Callable[[Line], object]
    ) -> Iterator[tuple[bool, _Ranges]]:
        """Parts of two ranges of lines: those that are the same, and those between."""
        start, end, first, last = within
        old = [key(x) for x in self.old[start:end]]
        new = [key(x) for x in self.new[first:last]]
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for kind, i, i_end, j, j_end in matcher.get_opcodes():
            yield kind == "equal", (start + i, start + i_end, first + j, first + j_end)

    def _fates(self, shifted: Sequence[tuple[int, int]]) -> list[Match]:
        """What became of lines that differ in their indentation: they have moved, unless all that
        is left of what was around them is still around them."""
        partners = {m.old: m.new for m in self.matches if m.old is not None and m.new is not None}
        partners.update(shifted)
        stayed = frozenset(partners.values())
        before, after = parents(self.old), parents(self.new)
        found = []
        for a, b in shifted:
            was = [partners[n] for n in around(before, a) if n in partners]
            fate: Fate = "dedented" if indent(self.old[a]) > indent(self.new[b]) else "indented"
            if was != [n for n in around(after, b) if n in stayed]:
                fate = "moved"
            found.append(Match(fate, a, b))
        return found

    def _pair(self, fate: Fate, pairs: Iterable[tuple[int, int]]) -> None:
        found = list(pairs)
        self.matches += [Match(fate, a, b) for a, b in found]
        self._leave(found)

    def _leave(self, pairs: Iterable[tuple[int, int]]) -> None:
        found = list(pairs)
        gone, come = {a for a, _ in found}, {b for _, b in found}
        self.old_left = [n for n in self.old_left if n not in gone]
        self.new_left = [n for n in self.new_left if n not in come]

    def _alike(self, key: object) -> list[tuple[int, int]]:
        waiting: dict[object, list[int]] = defaultdict(list)
        for n in self.old_left:
            if self.old[n].span is not None:
                waiting[key(self.old[n])].append(n)  # type: ignore[operator]
        pairs = []
        for n in self.new_left:
            found = waiting.get(key(self.new[n]))  # type: ignore[operator]
            if found:
                pairs.append((found.pop(0), n))
        return pairs

    def _renamed(self) -> tuple[tuple[str, str], ...]:
        """Lines that differ in names alone, where most such lines agree on what is called how."""
        pairs = self._alike(lambda x: (x.span, x.calls, _shape(x.text)))
        votes: Counter[tuple[str, str]] = Counter()
        for a, b in pairs:
            votes.update(_differing(self.old[a].text, self.new[b].text))
        chosen: dict[str, str] = {}
        taken: set[str] = set()
        # A name that is still bound as it was has not become another.
        bound = {
            found[1] for m in self.matches if m.fate == "kept" and m.new is not None
            if (found := _BOUND.match(self.new[m.new].text)) is not None
        }  # fmt: skip
        for (was, now), _ in votes.most_common():
            if was not in chosen and now not in taken and was not in bound:
                chosen[was] = now
                taken.add(now)
        agreed = [
            (a, b) for a, b in pairs
            if all(chosen.get(w) == n for w, n in _differing(self.old[a].text, self.new[b].text))
        ]  # fmt: skip
        self._pair("renamed", agreed)
        used = {p for a, b in agreed for p in _differing(self.old[a].text, self.new[b].text)}
        return tuple(p for p, _ in votes.most_common() if p in used)

    def _same_kind(self) -> None:
        self._pair("changed", self._alike(lambda x: (x.span, x.calls, _kind(x.text))))


def _itself(line: Line) -> object:
    return line.text, line.span, line.calls


def _but_for_indentation(line: Line) -> object:
    return line.text.strip(), line.span, line.calls


def _text(line: Line) -> object:
    return line.text


@cache
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text.strip()))


def _is_variable(token: str) -> bool:
    return _NAME.fullmatch(token) is not None and token not in _WORDS


@cache
def _shape(text: str) -> tuple[str, ...]:
    return tuple("·" if _is_variable(token) else token for token in _tokens(text))


@cache
def _kind(text: str) -> str:
    """`for T.unroll`, `T.copy`, `=`, `if`: what statement it is, without its operands."""
    tokens = [t for t in _tokens(text) if not t.isspace()]
    if not tokens:
        return ""
    if tokens[0] in _WORDS:
        return tokens[0]
    call = re.match(r"(?:[\w, ]+ = )?(T\.\w+)\(", text.strip())
    return call[1] if call else "="


def _differing(old: str, new: str) -> list[tuple[str, str]]:
    pairs = zip(_tokens(old), _tokens(new), strict=True)
    return [(a, b) for a, b in pairs if a != b and _is_variable(a)]


def line_changes(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """`word_changes` of two lines; how deep they are indented is no difference."""
    a, b = old.lstrip(), new.lstrip()
    gone, come = word_changes(a, b)
    return _further(gone, len(old) - len(a)), _further(come, len(new) - len(b))


def _further(ranges: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(start + by, end + by) for start, end in ranges]


def word_changes(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Which characters of two texts differ, by words: ranges in the old and in the new one."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for out, words, start, end in ((gone, a, i, i_end), (come, b, j, j_end)):
            if end > start:
                at = sum(map(len, words[:start]))
                out.append((at, at + sum(map(len, words[start:end]))))
    return gone, come
