"""Mutants that are as good as their kernels, and why.

Each is named by its kernel, the change, the line without the changes of spaces, and which one it is
of those called the same. `python -m benchmarks.mutants` proves them equal, and names reasons that
are about no mutant any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Equivalent:
    """Mutant `nth` that `change` makes of `line`."""

    kernel: str
    change: str
    line: str
    nth: int
    reason: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.kernel, self.change, self.line, self.nth


EQUIVALENTS: Final[tuple[Equivalent, ...]] = ()
