"""Whether a disagreement can be solved by moving data, how, and what it costs.

Costs are instructions per thread: one per register moved, and through shared memory one store and
one load per register plus two waits, for the warp where no other takes part.
"""

from __future__ import annotations

from collections.abc import Callable

from tilelang.layout.constraints import (
    Access,
    AnyLayout,
    Constraint,
    Divides,
    Equals,
    Fixed,
    Kind,
    Memory,
    Mode,
    OneOf,
    Origin,
    Reduced,
    Variable,
)
from tilelang.layout.fragment import Fragment
from tilelang.layout.propagate import State
from tilelang.layout.relations import Disagreement, index_facts, onto, through
from tilelang.layout.solution import Conversion, Via

# Instructions' worth of waiting for the block, and for the lanes of a warp; two per round trip.
BARRIER = 20
WARP_BARRIER = 2


def convert(
    constraint: Constraint, found: Disagreement | str, state: State
) -> Callable[[tuple[Origin, ...]], Conversion] | None:
    """The conversion that meets `constraint`, waiting for the ops to blame; None if none does."""
    var = _moved(constraint, state)
    if var is None or isinstance(found, str) or var.kind is Kind.SHARED:
        return None
    source = state.fragment(var)
    wanted = wanted_layout(constraint, state)
    target = wanted if isinstance(wanted, Fragment) else None
    via = _via(found)
    price = cost(via, source.registers(var.bits))
    if isinstance(constraint, Fixed) or _updates(constraint):
        price *= 2  # there and back

    def conversion(origins: tuple[Origin, ...]) -> Conversion:
        return Conversion(var, constraint, source, target, via, price, found, origins)

    return conversion


def cost(via: Via, registers: int) -> int:
    """Instructions per thread to move `registers` registers."""
    match via:
        case Via.REGISTERS:
            return registers
        case Via.WARP:
            return 2 * registers + 2 * WARP_BARRIER
        case Via.SHARED:
            return 2 * registers + 2 * BARRIER


def wanted_layout(constraint: Constraint, state: State) -> AnyLayout | None:
    """The layout `constraint` wants its variable to have, given everything else."""
    match constraint:
        case Fixed(_, layout):
            return layout
        case Access(nest, buffer, index):
            loop = state.fragment(nest)
            facts = state.facts(constraint)
            return loop if index is None else onto(loop, facts, buffer.shape) or loop
        case Equals(left, right, _, index):
            known = state.layouts[right]
            if index is None or not isinstance(known, Fragment):
                return known
            return through(known, index_facts(index, left.shape, right.shape), left.shape)
        case Reduced(out, source, dim):
            keep = len(out.shape) == len(source.shape)
            return state.fragment(source).reduce(dim, keepdim=keep)
        case OneOf(_, options):
            return min(options, key=lambda option: option.cost).layout
        case Divides() | Memory():
            return None


def _moved(constraint: Constraint, state: State) -> Variable | None:
    """The variable a conversion at `constraint` would move; None when none is legal there."""
    match constraint:
        case Fixed(var, _, _, convertible):
            return var if convertible else None
        case Access(_, buffer, _, mode, _, convertible):
            # Several iterations that write one element combine there, or race: data that lies
            # elsewhere cannot be put right by moving it.
            legal = mode is Mode.READ or state.facts(constraint).is_injective
            return buffer if convertible and legal else None
        case Equals(left, _, _, _, convertible):
            return left if convertible else None
        case Reduced(out, _, _, _, convertible):
            return out if convertible else None
        case OneOf() | Divides() | Memory():
            return None


def _via(found: Disagreement) -> Via:
    if found.what == "slot":
        return Via.REGISTERS
    return Via.SHARED if found.crosses_warps else Via.WARP


def _updates(constraint: Constraint) -> bool:
    return isinstance(constraint, Access) and constraint.mode is Mode.UPDATE
