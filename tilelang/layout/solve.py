"""Which layouts satisfy all ops of a kernel: `solve`.

Everything that follows is propagated; what stays free is chosen by cost, one variable at a time;
what then disagrees is converted, or reported with the smallest set of ops that cannot agree.
`constraints.py` shows a problem from end to end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from tilelang.layout.choose import choose
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Divides,
    Fixed,
    Memory,
    OneOf,
    Origin,
    Problem,
    Variable,
    variables_of,
)
from tilelang.layout.convert import convert, wanted_layout
from tilelang.layout.propagate import FUEL, OutOfFuel, Reason, State, check, propagate
from tilelang.layout.relations import Disagreement
from tilelang.layout.solution import Conflict, Conversion, Solution


def solve(problem: Problem, fuel: int = FUEL) -> Solution:
    """Layouts for every variable of `problem`, with what had to be converted and what cannot be."""
    try:
        state = _assign_all(problem, fuel)
    except OutOfFuel:
        return _gave_up(problem, fuel)
    conversions: list[Conversion] = []
    conflicts: list[Conflict] = []
    for constraint in problem.constraints:
        problem_here = check(constraint, state)
        if problem_here is None:
            continue
        conversion = convert(constraint, problem_here, state)
        origins = _core(problem, constraint, state, fuel)
        if conversion is not None:
            conversions.append(conversion(origins))
        else:
            conflicts.append(_conflict(constraint, problem_here, origins, state))
    return Solution(
        MappingProxyType(state.layouts),
        MappingProxyType(state.reasons),
        tuple(conversions),
        tuple(conflicts),
    )


def _assign_all(problem: Problem, fuel: int) -> State:
    state = State(problem, fuel)
    propagate(state)
    while free := state.free():
        state.assign(choose(state, free))
        propagate(state)
    return state


def _core(problem: Problem, broken: Constraint, state: State, fuel: int) -> tuple[Origin, ...]:
    """The smallest set of ops that still lead to the disagreement, in program order.

    What the layouts were derived from usually does; when a choice elsewhere had a part in it,
    everything is suspect. Then ops are left out, with all they demand, and the rest solved again,
    halves first, until no single one can go.
    """

    def disagree(origins: Sequence[Origin]) -> bool:
        blamed = set(origins)
        constraints = tuple(c for c in problem.constraints if c.origin in blamed)
        part = Problem(problem.threads, constraints, (), problem.warp)
        try:
            return check(broken, _assign_all(part, fuel)) is not None
        except OutOfFuel:
            return False

    kept: Sequence[Origin] = _origins(_ancestry(broken, state.reasons, problem))
    if not disagree(kept):
        kept = _origins(problem.constraints)
    size = max(1, len(kept) // 2)
    while True:
        before = len(kept)
        start = 0
        while start < len(kept):
            out = range(start, start + size)
            rest = [o for k, o in enumerate(kept) if k not in out or o == broken.origin]
            if len(rest) < len(kept) and disagree(rest):
                kept = rest
            else:
                start += size
        # Leaving one out may make another one dispensable: choices depend on all that is left.
        if size == 1 and len(kept) == before:
            return tuple(kept)
        size = max(1, size // 2)


def _ancestry(
    broken: Constraint, reasons: dict[Variable, Reason], problem: Problem
) -> list[Constraint]:
    """The constraints the layouts at `broken` were derived from, in program order."""
    found: set[int] = {id(broken)}
    pending = list(variables_of(broken))
    seen: set[Variable] = set()
    while pending:
        var = pending.pop()
        if var in seen:
            continue
        seen.add(var)
        reason = reasons[var]
        if reason.constraint is not None:
            found.add(id(reason.constraint))
        pending += reason.parents
    return [c for c in problem.constraints if id(c) in found]


def _conflict(
    constraint: Constraint, found: Disagreement | str, origins: tuple[Origin, ...], state: State
) -> Conflict:
    var = _subject(constraint)
    if isinstance(found, str):
        return Conflict(var, constraint, found, origins, have=state.layouts[var])
    return Conflict(
        var,
        constraint,
        f"{var} cannot have one layout for all its uses",
        origins,
        have=state.layouts[var],
        want=wanted_layout(constraint, state),
        example=found,
    )


def _subject(constraint: Constraint) -> Variable:
    """The variable a message about a broken constraint is about."""
    match constraint:
        case Access(_, buffer):
            return buffer
        case Fixed(var) | OneOf(var) | Divides(var):
            return var
        case Memory(nest):
            return nest
        case _:
            return variables_of(constraint)[0]


def _origins(constraints: Iterable[Constraint]) -> tuple[Origin, ...]:
    return tuple(dict.fromkeys(constraint.origin for constraint in constraints))


def _gave_up(problem: Problem, fuel: int) -> Solution:
    """Our own fault, and said so: nothing is inferred."""
    reason = f"layout inference took more than {fuel} steps"
    first = problem.constraints[0]
    conflict = Conflict(_subject(first), first, reason, _origins(problem.constraints))
    return Solution(MappingProxyType({}), MappingProxyType({}), (), (conflict,))
