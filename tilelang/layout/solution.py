"""What the solver answers: layouts, conversions, conflicts, and the reason for each.

A disagreement between ops is a `Conversion` when data can be moved, with its cost, and a
`Conflict` otherwise. Both carry the ops concerned, so that a message can name every side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tilelang.layout.constraints import AnyLayout, Constraint, Origin, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.propagate import Reason
from tilelang.layout.relations import Disagreement


class Via(Enum):
    """How data gets from one layout to another."""

    REGISTERS = "registers"  # same threads, other slots: costs moves at most
    WARP = "shared memory within each warp"  # a store, a wait of the warp, a load
    SHARED = "shared memory"  # other warps: a store, a barrier, a load


@dataclass(frozen=True, slots=True)
class Conversion:
    """At `constraint`, `var` is moved between `source` (how it is stored) and `target` (how the
    op has it; None when that is no fragment, as for an index that is data).

    `cost` estimates the instructions a thread spends.
    """

    var: Variable
    constraint: Constraint
    source: Fragment
    target: Fragment | None
    via: Via
    cost: int
    example: Disagreement
    origins: tuple[Origin, ...]

    def __str__(self) -> str:
        return f"{self.var} goes through {self.via.value} for {self.constraint.origin}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Demands that no layout of `var` meets and no conversion solves.

    `origins` is a smallest set of ops that cannot agree, in program order: drop any one of them
    and the others can. `have` is the layout the others gave `var`, `want` the one `constraint`
    asks for.
    """

    var: Variable
    constraint: Constraint
    reason: str
    origins: tuple[Origin, ...]
    have: AnyLayout | None = None
    want: AnyLayout | None = None
    example: Disagreement | None = None

    def __str__(self) -> str:
        sides = "" if self.have is None or self.want is None else f": {self.have} or {self.want}"
        return f"{self.reason}{sides}"


@dataclass(frozen=True, slots=True)
class Why:
    """The chain of reasons for one layout, from the variable down to what nothing derived."""

    steps: tuple[Reason, ...]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The ops in the chain."""
        found = (step.constraint.origin for step in self.steps if step.constraint is not None)
        return tuple(dict.fromkeys(found))

    def __str__(self) -> str:
        lines = []
        for step in self.steps:
            lines.append(f"{step.var}: {step.layout}")
            note = f" ({step.note})" if step.note else ""
            if step.constraint is None:
                lines.append(f"  chosen{note}")
            elif step.parents:
                parents = ", ".join(map(str, step.parents))
                lines.append(f"  from {parents}, by {step.constraint.origin}{note}")
            else:
                lines.append(f"  required by {step.constraint.origin}{note}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Solution:
    """A layout for every variable, even next to conflicts, so that tools can show the rest."""

    layouts: Mapping[Variable, AnyLayout]
    reasons: Mapping[Variable, Reason]
    conversions: tuple[Conversion, ...]
    conflicts: tuple[Conflict, ...]

    @property
    def ok(self) -> bool:
        """Whether the kernel can be compiled with these layouts."""
        return not self.conflicts

    def why(self, var: Variable) -> Why:
        """Everything the layout of `var` rests on."""
        steps: dict[Variable, Reason] = {}
        pending = [var]
        while pending:
            reason = self.reasons.get(pending.pop())
            if reason is not None and reason.var not in steps:
                steps[reason.var] = reason
                pending += reversed(reason.parents)
        return Why(tuple(steps.values()))
