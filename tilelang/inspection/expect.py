"""Does the code hold what somebody expects of it? `cp.async>=4,mma>0,spills==0`

A comparison is a name, one of `>= <= == != > <`, and a whole number. Counts are of all kernels
together; `loop.NAME` is the most that any one loop holds, loops inside it not counted twice.
Registers, occupancy and the like are of the kernel for which they are worst.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilelang.inspection.counts import NAMES
from tilelang.inspection.model import Inspection, KernelReport
from tilelang_diagnostics import diagnose, did_you_mean
from tilelang_diagnostics.model import Diagnostic

_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_TEXT: Final = re.compile(r"\s*([\w.]+)\s*(>=|<=|==|!=|>|<|=)\s*(-?\d+)\s*")


def _most(of: Callable[[KernelReport], int | None]) -> Callable[[Inspection], int | None]:
    def found(inspection: Inspection) -> int | None:
        values = [v for k in inspection.kernels if (v := of(k)) is not None]
        return max(values, default=None)

    return found


def _least(of: Callable[[KernelReport], int | None]) -> Callable[[Inspection], int | None]:
    def found(inspection: Inspection) -> int | None:
        values = [v for k in inspection.kernels if (v := of(k)) is not None]
        return min(values, default=None)

    return found


# What is not a count: its meaning, and where it is found.
FACTS: Final[Mapping[str, tuple[str, Callable[[Inspection], int | None]]]] = {
    "registers": ("registers of a thread", _most(lambda k: k.registers)),
    "spills": ("bytes of registers spilled, stores and loads", _most(lambda k: k.spills)),
    "stack": ("bytes of stack of a thread", _most(lambda k: k.stack)),
    "shared": ("bytes of shared memory of a block", _most(lambda k: k.shared.total)),
    "shared.static": ("those of constant size", _most(lambda k: k.shared.static)),
    "shared.dynamic": ("those asked for at launch", _most(lambda k: k.shared.dynamic)),
    "occupancy": ("percent of a multiprocessor's warps that run at once",
                  _least(lambda k: k.occupancy.percent if k.occupancy else None)),
    "blocks": ("blocks that a multiprocessor runs at once",
               _least(lambda k: k.occupancy.blocks if k.occupancy else None)),
    "loops": ("loops of the code", lambda i: sum(len(k.loops) for k in i.kernels)),
    "conflicts": ("worst predicted bank conflict, 1 for none",
                  lambda i: max((c.degree for c in i.conflicts), default=1)),
    "remarks": ("remarks and warnings of the compiler", lambda i: len(i.remarks)),
}  # fmt: skip


class BadExpectation(ValueError):
    """An expectation that cannot be read."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One comparison."""

    name: str
    compare: str
    number: int

    def __post_init__(self) -> None:
        if self.compare not in _COMPARE:
            raise BadExpectation(f"{self.compare!r} does not compare")
        base = self.name.removeprefix("loop.")
        if self.name not in FACTS and base not in NAMES:
            known = [*NAMES, *FACTS, *(f"loop.{n}" for n in NAMES)]
            raise BadExpectation(f"nothing is counted under `{self.name}`"
                                 f"{did_you_mean(self.name, known)}")  # fmt: skip

    def value(self, found: Inspection) -> int | None:
        """What it is about; None where that is not known."""
        if self.name in FACTS:
            return FACTS[self.name][1](found)
        if self.name.startswith("loop."):
            name = self.name.removeprefix("loop.")
            return max((loop.counts[name] for k in found.kernels for loop in k.loops), default=0)
        return found.counts[self.name]

    def holds(self, found: Inspection) -> bool:
        value = self.value(found)
        return value is not None and _COMPARE[self.compare](value, self.number)

    def __str__(self) -> str:
        return f"{self.name}{self.compare}{self.number}"


def parse_expectations(text: str) -> tuple[Expectation, ...]:
    """The comparisons of a text; BadExpectation says what cannot be read."""
    found = []
    for part in text.split(","):
        if not part.strip():
            continue
        match = _TEXT.fullmatch(part)
        if match is None:
            raise BadExpectation(f"{part.strip()!r} is no comparison, such as mma>0")
        name, compare, number = match.groups()
        found.append(Expectation(name, "==" if compare == "=" else compare, int(number)))
    if not found:
        raise BadExpectation("nothing is expected: write comparisons, such as mma>0")
    return tuple(found)


def misses(found: Inspection, expected: Sequence[Expectation]) -> Iterator[Diagnostic]:
    """TL610 for each expectation that does not hold, with what was found."""
    for one in expected:
        if one.holds(found):
            continue
        value = one.value(found)
        said = "is not known" if value is None else f"is {value}"
        notes = (found.note,) if found.note else ()
        yield diagnose(
            "TL610", f"`{one}` was expected of {found.name} for {found.target}: {one.name} {said}",
            notes=notes,
        )  # fmt: skip


def names_help() -> str:
    """All names, one a line, for a help text."""
    plain = {n: t for n, t in NAMES.items() if not re.search(r"\.b\d+$", n)}
    rows = [*plain.items(), *((name, text) for name, (text, _) in FACTS.items())]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)
