"""What would the compiler say about this file? Everything it can tell from the text."""

from __future__ import annotations

from collections.abc import Iterable

from tilelang_diagnostics import Diagnostic
from tilelang_lint.rules.base import Subject


def compiler_checks(subject: Subject) -> Iterable[Diagnostic]:
    """The diagnostics of the file and of every kernel in it."""
    return subject.kernels.all_diagnostics
