"""What do layouts and lowering say about the open files? Kept by the text they hold for.

The insight into a kernel holds for the texts that it depends on (`depends.py`): editing one kernel
leaves those of the others standing. Until a changed kernel has been looked into again,
what was known of it moves along with the edits.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tilelang_diagnostics import Diagnostic
from tilelang_lsp.assembly import Reading
from tilelang_lsp.edits import Change, move_budgets, move_diagnostics, move_facts
from tilelang_lsp.model import Fact, Insight, Kernel
from tilelang_lsp.moves import Moves, Placed, Tops
from tilelang_lsp.options import Options

MOST = 128  # insights kept
Key = tuple[str, str, int]  # owner, name, which of that name


def keys_of(kernels: Iterable[Kernel]) -> dict[Key, Kernel]:
    """The kernels of a file by names that stay when it is edited elsewhere."""
    found: dict[Key, Kernel] = {}
    for kernel in sorted(kernels, key=lambda k: k.span):
        count = sum(1 for owner, name, _ in found if (owner, name) == (kernel.owner, kernel.name))
        found[kernel.owner, kernel.name, count] = kernel
    return found


def digests(reading: Reading, options: Options, run: bool = False) -> dict[Key, str]:
    """For each kernel, what its insight depends on; or what comes of it when it is run."""
    texts = {name: does if run else says for name, says, does in reading.head.digests}
    settings = repr((sorted(options.values.items(), key=str), options.targets,
                     sorted(options.project.items(), key=str), options.imports.keys))  # fmt: skip
    return {
        key: _hash(texts[kernel.owner], key, settings, reading.path)
        for key, kernel in keys_of(reading.kernels).items()
    }


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Known:
    """What is known of one kernel; where its text is now is found out when it is asked for.

    `whole` is all of it where its file had it when the kernel was looked into, and `diagnostics`
    its findings where the text is now. `has_moved` says that the text was edited since it was read.
    """

    whole: Placed[Insight]
    digest: str
    diagnostics: tuple[Diagnostic, ...]
    has_moved: bool = False
    _insight: Insight | None = None
    _moves: Moves | None = None
    _ahead: list[Change] = field(default_factory=list)

    @staticmethod
    def of(whole: Placed[Insight], digest: str, tops: Tops, path: str) -> Known:
        """In a version of the file that begins its statements on other lines, maybe."""
        moves = Moves(whole.tops, tops, path)
        found = tuple(map(moves.diagnostic, whole.what.diagnostics))
        return Known(whole, digest, found, _moves=moves)

    @property
    def insight(self) -> Insight:
        """With the places where the text is now."""
        found = self._insight
        if found is None:
            found = self.whole.what
            if self._moves is not None and self._moves.any:
                found = _shifted(found, self._moves)
        for change in self._ahead:
            found = _moved(found, change)
        self._ahead.clear()
        self._insight = replace(found, diagnostics=self.diagnostics)
        return self._insight

    def move(self, change: Change) -> None:
        """Follow an edit."""
        self.has_moved = True
        self.diagnostics = move_diagnostics(self.diagnostics, change)
        self._ahead.append(change)


def _moved(old: Insight, change: Change) -> Insight:
    place = change.move(old.line, 1)
    return replace(
        old,
        line=old.line if place is None else place[0],
        facts=move_facts(old.facts, change),
        budgets=move_budgets(old.budgets, change),
    )


def _shifted(old: Insight, moves: Moves) -> Insight:
    return replace(
        old,
        line=moves.line(old.line),
        facts=tuple(map(moves.fact, old.facts)),
        budgets=tuple(map(moves.budget, old.budgets)),
    )


class Insights:
    """All insights ever got, the oldest forgotten."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Placed[Insight]] = OrderedDict()

    def get(self, digest: str, tops: Tops) -> Placed[Insight] | None:
        """The insight into a kernel, where its file had it then; None too where the file has more
        or fewer statements now, so that nobody knows where things went."""
        kept = self._kept.get(digest)
        if kept is None or len(kept.tops) != len(tops):
            return None
        self._kept.move_to_end(digest)
        return kept

    def put(self, digest: str, insight: Placed[Insight]) -> None:
        """Keep an insight into a kernel."""
        self._kept[digest] = insight
        self._kept.move_to_end(digest)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)


@dataclass(slots=True)
class FileInsights:
    """What is known of the kernels of one file."""

    known: dict[Key, Known] = field(default_factory=dict)

    def update(self, reading: Reading, digest: Mapping[Key, str], kept: Insights) -> None:
        """Take what is kept for the kernels as they are now, and forget those that are gone."""
        tops = reading.head.tops
        self.known = {k: v for k, v in self.known.items() if k in digest}
        for key, current in digest.items():
            known = self.known.get(key)
            if known is not None and known.digest == current and not known.has_moved:
                continue
            found = kept.get(current, tops)
            if found is not None:
                self.known[key] = Known.of(found, current, tops, reading.path)

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
        return tuple(f for known in self.known.values() for f in known.insight.facts)

    def groups(self, tops: Tops) -> Iterator[Placed[tuple[Fact, ...]]]:
        """Those of each kernel, for the version that was read with these `tops`: the same objects
        inside for as long as they stay the same."""
        for known in self.known.values():
            if known.has_moved:
                yield Placed(known.insight.facts, tops)
            else:
                yield Placed(known.whole.what.facts, known.whole.tops)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of all kernels."""
        return tuple(d for known in self.known.values() for d in known.diagnostics)

    def of(self, key: Key) -> Insight | None:
        """What is known of one kernel."""
        found = self.known.get(key)
        return None if found is None else found.insight
