"""What is wrong with the layouts of a launch, or costs time: one question per file.

For a target that needs no layouts everything is a remark, as its kernel compiles anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tilelang.layouts.findings import (
    banks,
    coverage,
    disagreements,
    groups,
    memory,
    owners,
    registers,
)
from tilelang_diagnostics.model import Diagnostic, Severity

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

Finding: TypeAlias = "Callable[[Solved], Iterator[Diagnostic]]"

FINDINGS: tuple[Finding, ...] = (
    groups.check,
    disagreements.check,
    owners.check,
    coverage.check,
    banks.check,
    memory.check,
    registers.check,
)


def of_launch(solved: Solved) -> Iterator[Diagnostic]:
    """Everything there is to say about a launch, refused operations first."""
    for found in _all(solved):
        if solved.machine.nominal and found.severity is not Severity.REMARK:
            found = replace(found, severity=Severity.REMARK)
        yield found


def _all(solved: Solved) -> Iterator[Diagnostic]:
    for builder, _ in solved.groups:
        yield from builder.found
    for check in FINDINGS:
        yield from check(solved)
