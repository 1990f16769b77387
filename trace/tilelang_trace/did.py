"""What did a pass do in this compilation, in a few words?

    2 barriers inserted
    5 copies (1 through registers, 2 by cp.async)
    4 changed, +2 −0

What it decided says so, the same things together: what was told of no place in particular as it
stands, what was told of places by how many there are, with the ways that were taken if these are
few and short. Of a pass that decided nothing, how the program changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tilelang_trace.model import Decision, Step
from tilelang_trace.structure import Structure

_NAMES: Final = re.compile(r"(?:`[^`]*`(?: (?:→|and) )?)+")  # what it begins with
_BYTES: Final = re.compile(r"\b(\d+) bytes?\b")
_NUMBER: Final = re.compile(r"\d+")
_END: Final = re.compile(r"[,:]")
_MOST_WAYS, _LONGEST_WAY, _LONGEST_ALONE = 4, 28, 48
_PLURALS: Final = {"copy": "copies", "memory": "places in memory", "threads": "remarks on threads"}


def did(step: Step, found: Structure | None) -> str:
    """`found` is what became of the statements; None for the program that passes begin with."""
    decided = decisions_in_short(step)
    if decided:
        return decided
    if found is None:
        return ""
    return found.summary() if found.changed else "no change"


def decisions_in_short(step: Step) -> str:
    """What a pass decided; nothing for one that only rewrote."""
    return "; ".join((*_operations(step), *_decisions(step.decisions)))


def _operations(step: Step) -> Iterator[str]:
    """The tile operations that it dealt with one by one."""
    ran = Counter(one.name for one in step.inner if one.name.startswith("T."))
    if ran:
        yield ", ".join(f"{many} {name}" for name, many in ran.most_common())


def _decisions(decisions: Sequence[Decision]) -> Iterator[str]:
    by_kind: dict[str, list[Decision]] = {}
    for one in decisions:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, found in by_kind.items():
        whole = [d for d in found if d.span is None]
        if whole:
            yield from _as_told(whole)
        else:
            yield _counted(kind, found)


def _as_told(found: Sequence[Decision]) -> Iterator[str]:
    """Each as it stands, unless an earlier one has its numbers."""
    numbers: set[str] = set()
    for one in found:
        own = set(_NUMBER.findall(one.text))
        if own and own <= numbers:
            continue
        numbers |= own | set(_NUMBER.findall(one.why))
        yield _sized(f"{one.text} ({one.why})" if one.why else one.text)


def _counted(kind: str, found: Sequence[Decision]) -> str:
    ways = Counter(way for one in found if (way := _way(one.text)))
    text = f"{len(found)} {_plural(kind, len(found))}"
    longest = _LONGEST_ALONE if len(found) == 1 else _LONGEST_WAY
    if not ways or len(ways) > _MOST_WAYS or any(len(way) > longest for way in ways):
        return text
    if len(ways) == 1 and ways.total() == len(found):
        return f"{text} ({next(iter(ways))})"
    return f"{text} ({', '.join(f'{many} {way}' for way, many in ways.items())})"


def _way(text: str) -> str:
    """`by cp.async` of "`A` → `A_s` by cp.async, 16 bytes at a time"."""
    first = _END.split(text, 1)[0]
    named = _NAMES.match(first)
    return _sized(first[named.end() if named else 0 :].replace("`", "").strip())


def _plural(kind: str, many: int) -> str:
    if many == 1:
        return kind
    return _PLURALS.get(kind, f"{kind}s")


def _sized(text: str) -> str:
    return _BYTES.sub(lambda m: f"{int(m[1]):,} B", text)
