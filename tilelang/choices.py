"""What did the compiler choose, why, and why nothing faster?

Whoever chooses writes it down where it chooses: `passed_over` for each faster way whose first
condition failed, `chose` for what was taken in the end. Traces, `tilelang inspect` and the editor
show the same notes, in the same words (`Note.said`).

    >>> found = Choices()
    >>> found.passed_over("copy", "16 bytes at a time", "rows are 2002 bytes long")
    >>> found.chose("copy", "A → A_s, 2 bytes at a time")
    >>> found.notes[0].said
    'A → A_s, 2 bytes at a time; not 16 bytes at a time: rows are 2002 bytes long'
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tilelang_diagnostics.model import Span


@dataclass(frozen=True, slots=True)
class Rejected:
    """A faster way that was not taken, and the first condition of it that failed."""

    way: str
    why: str

    @property
    def said(self) -> str:
        return f"not {self.way}: {self.why}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was chosen. `places` are other places it has to do with, such as the access
    that a barrier keeps apart from this one; it is no diagnostic."""

    kind: str
    text: str
    span: Span | None = None
    why: str = ""
    rejected: tuple[Rejected, ...] = ()
    places: tuple[tuple[Span, str], ...] = ()

    @property
    def said(self) -> str:
        """All of it in one line."""
        return said(self.text, self.why, self.rejected)


def said(text: str, why: str, rejected: tuple[Rejected, ...]) -> str:
    """How a choice reads, wherever it is shown."""
    reason = f" ({why})" if why else ""
    return "; ".join([f"{text}{reason}", *(r.said for r in rejected)])


@dataclass(slots=True)
class Choices:
    """The notes of one compilation, each once. `thorough` also asks what it would have taken,
    which costs proofs: only where somebody reads the answer."""

    thorough: bool = False
    notes: list[Note] = field(default_factory=list)
    _over: dict[tuple[str, Span | None, str], dict[str, Rejected]] = field(default_factory=dict)
    _known: set[Note] = field(default_factory=set)

    def passed_over(
        self, kind: str, way: str, why: str, span: Span | None = None, of: str = ""
    ) -> None:
        """A faster way at a place was not taken; told with what is chosen there. The first reason
        for a way counts. Where a statement becomes several, `of` tells them apart."""
        self._over.setdefault((kind, span, of), {}).setdefault(way, Rejected(way, why))

    def chose(
        self, kind: str, text: str, span: Span | None = None, why: str = "",
        places: tuple[tuple[Span, str], ...] = (), rejected: tuple[Rejected, ...] = (),
        of: str = "", foreign: Collection[str] = (),
    ) -> None:  # fmt: skip
        """What was taken at a place, once. `foreign` are ways that are none for this part of a
        statement; one that the text names was taken, and a reason is told once."""
        over = (*self._over.get((kind, span, ""), {}).values(), *rejected)
        if of:
            over = (*over, *self._over.get((kind, span, of), {}).values())
        kept: list[Rejected] = []
        for one in over:
            told = any(other.why.endswith(one.why) for other in kept)
            if one.way not in foreign and one.way not in text and not told:
                kept.append(one)
        found = Note(kind, text, span, why, tuple(kept), places)
        if found not in self._known:
            self._known.add(found)
            self.notes.append(found)
