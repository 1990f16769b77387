"""What is wrong in this text? Parse once, run the rules, drop what is suppressed or not wanted.

Nothing here touches the disk and nothing raises for what a user wrote. A failure of our own
becomes a TL900 for the file at hand, and the other files are still checked.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang_diagnostics import Diagnostic, Span, diagnose
from tilelang_lint.rules import RULES, Rule, Subject
from tilelang_lint.selection import Selection
from tilelang_lint.suppressions import suppressions_in

INTERNAL = "TL900"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to look for, and the values kernels are specialised with."""

    selection: Selection = field(default_factory=Selection)
    values: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None


def lint_text(
    text: str, path: str, settings: Settings | None = None, rules: Sequence[Rule] = RULES
) -> tuple[Diagnostic, ...]:
    """The findings in one file, in source order."""
    settings = settings or Settings()
    if not mentions_tilelang(text):
        return ()
    try:
        subject = _read(text, path, settings)
        found = [d for rule in rules for d in rule(subject)]
    except Exception as error:
        return (_internal(path, error),)
    return settings.selection.keep(findings(found, text, path))


def findings(found: Sequence[Diagnostic], text: str, path: str) -> tuple[Diagnostic, ...]:
    """`found` without repetitions and without what comments of the file suppress."""
    suppressed = suppressions_in(text)
    kept = dict.fromkeys(d for d in found if not suppressed.covers(d, path))
    return tuple(sorted(kept, key=_place))


def mentions_tilelang(text: str) -> bool:
    """Whether a file can hold a kernel at all; the others are skipped without parsing."""
    return "tilelang" in text


def _read(text: str, path: str, settings: Settings) -> Subject:
    from tilelang.language.frontend import parse_static

    kernels = parse_static(text, path, values=settings.values, target=settings.target)
    return Subject(path, text, kernels)


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    return (0, 0) if span is None else (span.line, span.column)


def _internal(path: str, error: Exception) -> Diagnostic:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return diagnose(
        INTERNAL,
        f"the check failed with {type(error).__name__}: {error}",
        Span(path, 1, 1, 1, 1),
        notes=(f"raised in {last.name}, {last.filename}:{last.lineno}",),
        help="please report this together with the file",
    )
