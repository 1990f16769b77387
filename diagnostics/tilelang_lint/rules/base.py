"""What does a rule look at, and what does it give?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tilelang.language.frontend import StaticResult
from tilelang_diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One file as the front end reads it; all rules share one reading."""

    path: str
    text: str
    kernels: StaticResult


Rule: TypeAlias = Callable[[Subject], Iterable[Diagnostic]]
