"""What does a rule look at, and what does it give?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tilelang.language.frontend import StaticResult
from tilelang_diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """One file as the front end reads it; all rules share one reading.

    `failures` are the kernels that could not be read by our own fault.
    """

    path: str
    text: str
    kernels: StaticResult
    failures: tuple[Diagnostic, ...] = ()


Rule: TypeAlias = Callable[[Subject], Iterable[Diagnostic]]
