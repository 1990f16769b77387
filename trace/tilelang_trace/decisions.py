"""What did a pass decide? Its remarks, what it noted, and what it counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilelang.choices import Note
from tilelang_diagnostics import Diagnostic, Severity
from tilelang_trace.model import Decision
from tilelang_trace.near import near

# What kind of decision a remark of the catalogue is.
_KINDS: Final = {
    "TL306": "layout", "TL307": "layout", "TL309": "threads", "TL401": "target", "TL406": "memory",
    "TL507": "pipeline", "TL508": "copy", "TL509": "barrier", "TL513": "pipeline",
    "TL602": "copy", "TL603": "guard", "TL605": "vector", "TL606": "matrix",
}  # fmt: skip
# Counters that say something about a kernel; the others are about the compiler's own work.
_COUNTED: Final = {
    "barriers": ("barrier", "{} barrier{s} inserted"),
    "guards": ("guard", "{} guard{s} kept"),
    "pipelined loops": ("pipeline", "{} loop{s} pipelined"),
    "automatic stages": ("pipeline", "{} stage{s} chosen"),
    "stores staged": ("copy", "{} store{s} staged through shared memory"),
    "proxy fences": ("barrier", "{} fence{s} between ordinary accesses and an engine"),
    "prefetched loops": ("pipeline", "{} loop{s} with operands loaded ahead"),
    "prefetched sources": ("copy", "{} source{s} prefetched"),
    "serialized loops": ("loop", "{} loop{s} kept in order"),
    "unswitched nests": ("loop", "{} nest{s} in two forms, with guards and without"),
    "tiles moved through shared memory": ("layout", "{} tile{s} moved through shared memory"),
    "shared bytes": ("memory", "{} byte{s} of shared memory a block"),
}  # fmt: skip


class Decisions:
    """Remembers what a context held, to tell what came since. Reasons name files as seen from the
    `traced` one."""

    def __init__(self, traced: str = "") -> None:
        self._traced = traced
        self._remarks = 0
        self._notes = 0
        self._counters: dict[str, int] = {}

    def since(self, context: Any) -> tuple[tuple[Decision, ...], tuple[Diagnostic, ...]]:
        """Decisions and remarks that came since the last call."""
        if context is None:
            return (), ()
        remarks = tuple(context.remarks[self._remarks :])
        notes = context.choices.notes
        found = [
            Decision(note.kind, note.text, self._near(note), note.span,
                     tuple((r.way, r.why) for r in note.rejected), note.places)
            for note in notes[self._notes :]
        ]  # fmt: skip
        found += [
            Decision(_KINDS.get(d.code, "remark"), d.message, d.help or "", d.span)
            for d in remarks if d.severity is not Severity.ERROR and not _is_told(d, found)
        ]  # fmt: skip
        for name, (kind, words) in _COUNTED.items():
            new = context.counters.get(name, 0) - self._counters.get(name, 0)
            if new > 0:
                found.append(Decision(kind, words.format(new, s="" if new == 1 else "s")))
        self._remarks, self._notes = len(context.remarks), len(notes)
        self._counters = dict(context.counters)
        return tuple(found), remarks

    def _near(self, note: Note) -> str:
        return near(note.why, (note.span, *(span for span, _ in note.places)), self._traced)


def _is_told(remark: Diagnostic, found: Sequence[Decision]) -> bool:
    """Whether a decision at the place of a remark gives its reason."""
    here = [d for d in found if d.span and remark.span and d.span.line == remark.span.line]
    return any(remark.message.endswith(why) for d in here for _, why in d.rejected)
