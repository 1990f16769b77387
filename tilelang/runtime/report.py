"""How does a caller who asked for no report hear of a warning?

Through Python's `warnings`, so that filters, pytest and notebooks treat it as they treat others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from tilelang_diagnostics.model import Diagnostic, Severity

_said: set[str] = set()
_registry: dict[str | tuple[str, type[Warning], int], int] = {}


class TileLangWarning(UserWarning):
    """A warning of the compiler or the runtime. `diagnostic` has its code, places and help."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)  # what a copy in another process is made from
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        found = self.diagnostic
        text = f"{found.severity.value}[{found.code}]: {found.message}"
        return f"{text}\n  help: {found.help}" if found.help else text


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Warn of those that are warnings, at their place in the user's file."""
    for diagnostic in diagnostics:
        if diagnostic.severity is Severity.WARNING:
            span = diagnostic.span
            warnings.warn_explicit(
                TileLangWarning(diagnostic),
                TileLangWarning,
                filename=span.file if span else "<tilelang>",  # a file of that name may exist
                lineno=span.line if span else 1,
                registry=_registry,
            )


def warn_once(diagnostic: Diagnostic, key: str | None = None) -> None:
    """Warn once a process of what has the same `key` (default: the message)."""
    key = key or diagnostic.message
    if key not in _said:
        _said.add(key)
        warn((diagnostic,))
