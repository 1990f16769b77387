"""`tilelang lint --fix`: apply the fixes of findings, look again, until nothing is left to apply.

A fix that is safe is applied; of those that are suggestions the first one, if they are asked for.
Fixes that touch each other wait for the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tilelang_diagnostics import Applicability, Diagnostic, Edit, Fix, Span, apply_edits

# A suggestion may bring about what the next one is for; more often, two take turns.
ROUNDS: Final = 10
# Who has written the allocation of a tile may be about to write the rest.
_NEVER_ALONE: Final = frozenset({"TL186"})
Lint = Callable[[str], Sequence[Diagnostic]]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text after its fixes, what is still found in it, and how many fixes were applied."""

    text: str
    left: tuple[Diagnostic, ...]
    applied: int = 0


def fixed(text: str, path: str, lint: Lint, suggestions: bool) -> Fixed:
    """Apply what can be applied to the text of a file; `lint` says what is found in a text.

    A round of suggestions after which Python cannot read the text, or more errors are found, is
    taken back and ends it."""
    found, applied = tuple(lint(text)), 0
    for _ in range(ROUNDS):
        chosen = chosen_fixes(found, path, suggestions)
        if not chosen:
            break
        new = apply_edits(text, [edit for fix in chosen for edit in fix.edits])
        after = tuple(lint(new))
        if new == text or _errors(after) > _errors(found) or _is_unread(after):
            break
        text, found, applied = new, after, applied + len(chosen)
    return Fixed(text, found, applied)


def chosen_fixes(found: Iterable[Diagnostic], path: str, suggestions: bool) -> tuple[Fix, ...]:
    """The fixes that can be applied together, in the order of the findings."""
    chosen: list[Fix] = []
    kept: dict[Edit, None] = {}
    for diagnostic in found:
        fix = offered(diagnostic, suggestions)
        if fix is None or any(e.span.file != path for e in fix.edits):
            continue
        free = all(e in kept or not any(overlap(e.span, k.span) for k in kept) for e in fix.edits)
        if free and not all(e in kept for e in fix.edits):
            chosen.append(fix)
            kept.update(dict.fromkeys(fix.edits))
    return tuple(chosen)


def offered(diagnostic: Diagnostic, suggestions: bool) -> Fix | None:
    """The fix of a finding that is applied without being asked about."""
    for fix in diagnostic.fixes:
        perhaps = suggestions and diagnostic.code not in _NEVER_ALONE
        if fix.applicability is Applicability.SAFE or perhaps:
            return fix
    return None


def overlap(one: Span, other: Span) -> bool:
    """Whether two places of a file touch each other."""
    if one.file != other.file:
        return False
    return (one.line, one.column) <= (other.end_line, other.end_column) and (
        other.line, other.column
    ) <= (one.end_line, one.end_column)  # fmt: skip


def _errors(found: Iterable[Diagnostic]) -> int:
    return sum(d.is_error for d in found)


def _is_unread(found: Iterable[Diagnostic]) -> bool:
    return any(d.code == "TL101" for d in found)
