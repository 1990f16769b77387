"""What follows from what is known: layouts of further variables, one step at a time.

Steps that leave no choice come first (`_Rank`), so that the result does not depend on the order
of the constraints. A step is never taken back; a demand it does not meet shows in `check`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from tilelang.layout.constraints import (
    Access,
    AnyLayout,
    Constraint,
    Divides,
    Equals,
    Fixed,
    Memory,
    Mode,
    OneOf,
    Option,
    Problem,
    Reduced,
    Variable,
    variables_of,
)
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.relations import (
    Disagreement,
    IndexFacts,
    anywhere,
    disagreement,
    index_facts,
    onto,
    owners_differ,
    slots_differ,
    through,
)

# Steps a solver may take. The flash attention kernel takes about 60; a kernel a hundred times
# larger still ends, and a rule that would loop for ever is reported instead.
FUEL = 20_000


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a variable has its layout: a constraint with the variables it was derived from, or a
    choice (no constraint) with its grounds in `note`."""

    var: Variable
    layout: AnyLayout
    constraint: Constraint | None
    parents: tuple[Variable, ...] = ()
    note: str = ""


class OutOfFuel(Exception):
    """The solver took more steps than any sensible kernel needs."""


class State:
    """The solver's working set: what is known so far."""

    def __init__(self, problem: Problem, fuel: int = FUEL) -> None:
        self.problem = problem
        self.fuel = fuel
        self.layouts: dict[Variable, AnyLayout] = {}
        self.reasons: dict[Variable, Reason] = {}
        self._facts: dict[int, IndexFacts] = {}
        self.touching: dict[Variable, list[Constraint]] = {v: [] for v in problem.variables}
        for constraint in problem.constraints:
            for var in dict.fromkeys(variables_of(constraint)):
                self.touching[var].append(constraint)

    def branch(self) -> State:
        """An independent continuation; the fuel it burns is the caller's to account for."""
        other = State.__new__(State)
        other.problem, other.fuel, other.touching = self.problem, self.fuel, self.touching
        other.layouts, other.reasons = dict(self.layouts), dict(self.reasons)
        other._facts = self._facts
        return other

    def assign(self, reason: Reason) -> None:
        """Record one more layout."""
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel
        self.layouts[reason.var] = reason.layout
        self.reasons[reason.var] = reason

    def free(self) -> list[Variable]:
        """Variables without a layout, in program order."""
        return [var for var in self.touching if var not in self.layouts]

    def fragment(self, var: Variable) -> Fragment:
        """The layout of a fragment or loop that has one."""
        layout = self.layouts[var]
        assert isinstance(layout, Fragment)
        return layout

    def facts(self, access: Access) -> IndexFacts:
        """The flattened index map of an access."""
        found = self._facts.get(id(access))
        if found is None:
            if access.index is None:
                found = anywhere(access.loop.shape, access.buffer.shape)
            else:
                found = index_facts(access.index, access.loop.shape, access.buffer.shape)
            self._facts[id(access)] = found
        return found


class _Rank(IntEnum):
    """How much a step decides; lower goes first."""

    PINNED = 0  # a user's annotation
    FIXED = 1  # an instruction
    SAME = 2  # one to one with something known
    WRITER = 3  # a loop must run where what it writes lives
    READER = 4  # a loop may run where what it reads lives
    RESULT = 5  # a buffer lives where the loop that touches it runs
    UNION = 6  # the same, with several iterations per element
    PREFERRED = 7  # the cheapest of several options


def propagate(state: State) -> None:
    """Take every step that follows from the constraints."""
    while True:
        steps = [step for c in state.problem.constraints for step in _steps(c, state)]
        if not steps:
            return
        # `min` keeps the first of equals: program order.
        for _, constraint, var in sorted(steps, key=lambda step: step[0]):
            reason = _derive(constraint, var, state)
            if reason is not None:
                state.assign(reason)
                break
        else:
            return


def check(constraint: Constraint, state: State) -> Disagreement | str | None:
    """How the layouts of `state` break a constraint: an example element, or a sentence."""
    layouts, warp = state.layouts, state.problem.warp
    if any(var not in layouts for var in variables_of(constraint)):
        return None
    match constraint:
        case Fixed(var, layout):
            return _check_fixed(layouts[var], layout, warp)
        case Access(nest, buffer, _, mode):
            loop, tile = state.fragment(nest), state.fragment(buffer)
            return disagreement(mode, loop, tile, state.facts(constraint), buffer.shape, warp)
        case Equals():
            return _check_equals(constraint, state)
        case Reduced(out, source, dim):
            whole = state.fragment(source).reduce(dim, keepdim=len(out.shape) == len(source.shape))
            return owners_differ(state.fragment(out), whole, warp, subset=True)
        case OneOf(var, options):
            known = layouts[var]
            if any(option.layout == known for option in options):
                return None
            return f"{var} has none of the layouts this op can work with"
        case Divides(var, dim, divisor, _, what):
            extent = var.shape[dim]
            if extent % divisor == 0:
                return None
            named = f"{what} {divisor}" if what else str(divisor)
            return f"extent {extent} of dimension {dim} of {var} is no multiple of {named}"
        case Memory():
            return None


_Step = tuple[_Rank, Constraint, Variable]


def _steps(constraint: Constraint, state: State) -> Iterator[_Step]:
    """Which variables a constraint could decide now, and how strongly."""
    known = state.layouts
    match constraint:
        case Fixed(var) if var not in known:
            yield _Rank.FIXED if constraint.convertible else _Rank.PINNED, constraint, var
        case Access(nest, buffer) if nest not in known and buffer in known:
            facts = state.facts(constraint)
            if facts.is_bijective:
                yield _Rank.SAME, constraint, nest
            elif constraint.mode is not Mode.READ and not facts.is_anywhere:
                yield _Rank.WRITER, constraint, nest
            elif facts.is_injective:
                yield _Rank.READER, constraint, nest
        case Access(nest, buffer) if nest in known and buffer not in known:
            facts = state.facts(constraint)
            if facts.is_surjective and not facts.is_anywhere:
                yield _Rank.RESULT if facts.is_bijective else _Rank.UNION, constraint, buffer
        case Equals(left, right) if (left in known) != (right in known):
            yield _Rank.SAME, constraint, right if left in known else left
        case Reduced(out, source) if out not in known and source in known:
            yield _Rank.SAME, constraint, out
        case OneOf(var) if var not in known:
            yield _Rank.PREFERRED, constraint, var
        case _:
            pass


def _derive(constraint: Constraint, var: Variable, state: State) -> Reason | None:
    """The layout a constraint gives to `var`; None when it cannot after all."""
    match constraint:
        case Fixed(_, layout):
            return Reason(var, layout, constraint)
        case Access(nest, buffer):
            if var == nest:
                return _agreed_loop(constraint, state)
            tile = onto(state.fragment(nest), state.facts(constraint), buffer.shape)
            return None if tile is None else Reason(var, tile, constraint, (nest,))
        case Equals(left, right):
            other = _across(constraint, var, state)
            parent = left if var == right else right
            return None if other is None else Reason(var, other, constraint, (parent,))
        case Reduced(out, source, dim):
            keep = len(out.shape) == len(source.shape)
            layout = state.fragment(source).reduce(dim, keepdim=keep)
            return Reason(var, layout, constraint, (source,))
        case OneOf():
            return _preferred(var, state)
        case _:
            return None


def _agreed_loop(first: Access, state: State) -> Reason:
    """Where a loop runs: where `first` says, unless another access saves more conversions."""
    nest = first.loop
    accesses = [
        c
        for c in state.touching[nest]
        if isinstance(c, Access) and c.buffer in state.layouts and c is not first
    ]
    strong = [
        c for c in accesses if c.index is not None and (c.mode is not Mode.READ or _one(c, state))
    ]
    reasons: list[Reason] = []
    for access in (first, *strong):
        layout = through(state.fragment(access.buffer), state.facts(access), nest.shape)
        if not any(layout == reason.layout for reason in reasons):
            reasons.append(Reason(nest, layout, access, (access.buffer,)))
    if len(reasons) == 1:
        return reasons[0]

    def broken(reason: Reason) -> int:
        trial = state.branch()
        trial.assign(reason)
        return sum(c.buffer.bits for c in (first, *accesses) if check(c, trial) is not None)

    return min(reasons, key=broken)


def _one(access: Access, state: State) -> bool:
    return state.facts(access).is_injective


def _across(constraint: Equals, var: Variable, state: State) -> AnyLayout | None:
    left, right, index = constraint.left, constraint.right, constraint.index
    known = state.layouts[left if var == right else right]
    if index is None:
        return known
    if isinstance(known, Layout):
        if var == left:
            return known.compose(replace_out_shape(index, right.shape))
        if not index.is_injective or index.size != known.size:
            return None
        return known.compose(replace_out_shape(index, right.shape).inverse())
    facts = index_facts(index, left.shape, right.shape)
    return through(known, facts, left.shape) if var == left else onto(known, facts, right.shape)


def replace_out_shape(index: Layout, shape: tuple[int, ...]) -> Layout:
    """An index map as a layout whose physical shape is the buffer it indexes."""
    return Layout(index.shape, index.map, out_shape=shape)


def _preferred(var: Variable, state: State) -> Reason | None:
    """The cheapest layout that every `OneOf` of `var` accepts."""
    demands = [c for c in state.touching[var] if isinstance(c, OneOf)]
    totals: list[Option] = []
    for option in demands[0].options:
        same = [next((o for o in d.options if o.layout == option.layout), None) for d in demands]
        if all(o is not None for o in same):
            cost = sum(o.cost for o in same if o is not None)
            why = ", ".join(dict.fromkeys(o.why for o in same if o is not None and o.why))
            totals.append(replace(option, cost=cost, why=why))
    if not totals:
        # No common ground: the first op gets its way and the others' checks fail.
        totals = list(demands[0].options)
    best = min(totals, key=lambda option: option.cost)
    note = best.why or f"cost {best.cost:g}"
    return Reason(var, best.layout, demands[0], note=note)


def _check_fixed(known: AnyLayout, wanted: AnyLayout, warp: int) -> Disagreement | None:
    if isinstance(known, Fragment) and isinstance(wanted, Fragment):
        if known is wanted:
            return None
        return owners_differ(wanted, known, warp) or slots_differ(wanted, known)
    assert isinstance(known, Layout) and isinstance(wanted, Layout)
    return _offsets_differ(known, wanted)


def _check_equals(constraint: Equals, state: State) -> Disagreement | None:
    left, right, index = constraint.left, constraint.right, constraint.index
    known = state.layouts[right]
    here = state.layouts[left]
    if isinstance(known, Layout) and isinstance(here, Layout):
        seen = known if index is None else known.compose(replace_out_shape(index, right.shape))
        return _offsets_differ(here, seen)
    assert isinstance(known, Fragment) and isinstance(here, Fragment)
    if index is not None:
        known = through(known, index_facts(index, left.shape, right.shape), left.shape)
    return owners_differ(here, known, state.problem.warp)


def _offsets_differ(known: Layout, wanted: Layout) -> Disagreement | None:
    if known.shape == wanted.shape and known == wanted:
        return None
    for index in _indices(known.shape):
        places = known.offset(*index), wanted.offset(*index)
        if places[0] != places[1]:
            return Disagreement(index, (places[0],), (places[1],), False, "offset")
    return None


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:

    return itertools.product(*(range(n) for n in shape))
