"""What do layouts and lowering say about the open files? Kept by the text they hold for.

The insight into a kernel holds for its own text and for all that is no kernel in its file: editing
one kernel leaves those of the others standing. Until a changed kernel has been looked into again,
what was known of it moves along with the edits.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilelang_diagnostics import Diagnostic
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.edits import Change, move_budgets, move_diagnostics, move_facts
from tilelang_lsp.model import Analysis, Fact, Insight, Kernel
from tilelang_lsp.moves import Moves
from tilelang_lsp.options import Options

MOST = 128  # insights kept
Key = tuple[str, str, int]  # owner, name, which of that name
Tops = tuple[int, ...]  # first lines of the statements at the top of a file


def keys_of(analysis: Analysis) -> dict[Key, Kernel]:
    """The kernels of a file by names that stay when it is edited elsewhere."""
    found: dict[Key, Kernel] = {}
    for kernel in analysis.kernels:
        count = sum(1 for owner, name, _ in found if (owner, name) == (kernel.owner, kernel.name))
        found[kernel.owner, kernel.name, count] = kernel
    return found


def digests(analysis: Analysis, options: Options) -> dict[Key, str]:
    """For each kernel, what its insight depends on."""
    lines = split_lines(analysis.text)
    owners = {kernel.owner for kernel in analysis.kernels}
    own: dict[str, str] = {}
    rest = list(lines)
    for top in analysis.outline:
        if top.name in owners:
            first, last = top.whole.line - 1, top.whole.end_line
            own[top.name] = own.get(top.name, "") + "\n".join(lines[first:last])
            rest[first:last] = [""] * (last - first)
    around = "\n".join(line for line in rest if line.strip())
    settings = repr((sorted(options.values.items(), key=str), options.targets,
                     sorted(options.project.items(), key=str), options.imports.keys))  # fmt: skip
    return {
        key: _hash(own.get(kernel.owner, ""), key, around, settings, analysis.path)
        for key, kernel in keys_of(analysis).items()
    }


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Known:
    """What is known of one kernel; where its text is now is found out when it is asked for."""

    found: Insight
    digest: str
    has_moved: bool = False
    _ahead: list[Change] = field(default_factory=list)

    @property
    def insight(self) -> Insight:
        """With the places where the text is now."""
        for change in self._ahead:
            self.found = _moved(self.found, change)
        self._ahead.clear()
        return self.found

    def move(self, change: Change) -> None:
        """Follow an edit."""
        self.has_moved = True
        self._ahead.append(change)


def _moved(old: Insight, change: Change) -> Insight:
    place = change.move(old.line, 1)
    return replace(
        old,
        line=old.line if place is None else place[0],
        facts=move_facts(old.facts, change),
        budgets=move_budgets(old.budgets, change),
        diagnostics=move_diagnostics(old.diagnostics, change),
    )


class Insights:
    """All insights ever got, the oldest forgotten."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Insight, Tops]] = OrderedDict()

    def get(self, digest: str, analysis: Analysis) -> Insight | None:
        """The insight into a kernel of a file, with its places where they are in that file."""
        if digest not in self._kept:
            return None
        self._kept.move_to_end(digest)
        insight, old = self._kept[digest]
        if analysis.tops != old:
            insight = _shifted(insight, Moves(old, analysis.tops, analysis.path))
            self._kept[digest] = insight, analysis.tops
        return insight

    def put(self, digest: str, insight: Insight, analysis: Analysis) -> None:
        """Keep an insight into a kernel of the analysed file."""
        self._kept[digest] = insight, analysis.tops
        self._kept.move_to_end(digest)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)


def _shifted(insight: Insight, moves: Moves) -> Insight:
    return replace(
        insight,
        line=moves.line(insight.line),
        facts=tuple(map(moves.fact, insight.facts)),
        budgets=tuple(
            replace(b, shares=tuple(replace(s, span=moves.maybe(s.span)) for s in b.shares))
            for b in insight.budgets
        ),
        diagnostics=tuple(map(moves.diagnostic, insight.diagnostics)),
    )


@dataclass(slots=True)
class FileInsights:
    """What is known of the kernels of one file."""

    known: dict[Key, Known] = field(default_factory=dict)

    def update(self, analysis: Analysis, digest: Mapping[Key, str], kept: Insights) -> None:
        """Take what is kept for the kernels as they are now, and forget those that are gone."""
        kernels = keys_of(analysis)
        self.known = {k: v for k, v in self.known.items() if k in kernels}
        for key in kernels:
            current = self.known.get(key)
            if (current is not None and current.digest == digest[key]
                    and not current.has_moved):  # fmt: skip
                continue
            found = kept.get(digest[key], analysis)
            if found is not None:
                self.known[key] = Known(found, digest[key])

    def missing(self, digest: Mapping[Key, str]) -> list[Key]:
        """The kernels that have to be looked into."""
        return [k for k, d in digest.items() if k not in self.known or self.known[k].digest != d]

    def move(self, change: Change) -> None:
        """Follow an edit."""
        for known in self.known.values():
            known.move(change)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Those of all kernels."""
        return tuple(f for facts in self.groups for f in facts)

    @property
    def groups(self) -> tuple[tuple[Fact, ...], ...]:
        """Those of each kernel: the same objects for as long as they stay the same."""
        return tuple(known.insight.facts for known in self.known.values())

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of all kernels."""
        return tuple(d for known in self.known.values() for d in known.insight.diagnostics)

    def of(self, key: Key) -> Insight | None:
        """What is known of one kernel."""
        found = self.known.get(key)
        return None if found is None else found.insight
