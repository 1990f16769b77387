"""What one diagnostic is: plain values, built where the fact is known and rendered elsewhere.

Positions are 1-based lines and 1-based columns, counted in code points of the user's file; the
end column is exclusive. Editors that count in UTF-16 convert at their own edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal


class Severity(Enum):
    """How bad it is. `ERROR` stops compilation; the others never do."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    HINT = "hint"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of one source file, `[start, end)`."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __post_init__(self) -> None:
        if self.line < 1 or self.column < 1:
            raise ValueError(f"spans are 1-based, got {self.line}:{self.column}")
        if (self.end_line, self.end_column) < (self.line, self.column):
            raise ValueError(f"span ends before it starts: {self}")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to(self, end: Span) -> Span:
        """The span from the start of this one to the end of `end`."""
        return replace(self, end_line=end.end_line, end_column=end.end_column)


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place that takes part in the problem, with what it contributes."""

    span: Span
    text: str


class Applicability(Enum):
    """Whether a fix may be applied without a person reading it."""

    SAFE = "safe"
    MAYBE = "maybe"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A titled set of edits that resolves the diagnostic."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.MAYBE


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the way from the kernel to the place of the problem (macro or helper)."""

    function: str
    span: Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `message` is lower case, has no full stop and stands alone; `label` says what is wrong with
    the primary span itself; only `help` says what to do about it. `calls` runs from the kernel
    (first) to the innermost macro or helper (last).
    """

    code: str
    severity: Severity
    message: str
    span: Span | None = None
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    fixes: tuple[Fix, ...] = ()
    calls: tuple[Frame, ...] = field(default=())

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    @property
    def is_internal(self) -> bool:
        """Whether the fault is ours, and not that of the kernel or the machine."""
        return self.code.startswith("TL9")

    def __str__(self) -> str:
        where = f"{self.span}: " if self.span else ""
        return f"{where}{self.severity.value}[{self.code}]: {self.message}"


def exit_status(
    diagnostics: Iterable[Diagnostic], least: Severity = Severity.ERROR
) -> Literal[0, 1, 3]:
    """That of a command which found these: 3 for a fault of ours, 1 for one that is `least` or
    worse, else 0."""
    found = tuple(diagnostics)
    if any(d.is_internal for d in found):
        return 3
    bad = tuple(Severity)[: tuple(Severity).index(least) + 1]
    return 1 if any(d.severity in bad for d in found) else 0


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of `diagnostics` stops compilation."""
    return any(d.is_error for d in diagnostics)
