"""Which layout a variable gets when nothing demands one: the cheapest candidate.

Candidates of a loop differ in the dimension neighbouring threads run along and in the vector
width; each is tried, everything that follows from it is propagated, and the whole is priced in
instructions per thread: iterations, registers, memory accesses (with the sectors they waste) and
conversions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang.layout.constraints import Access, Kind, Memory, Mode, Reduced, Variable, variables_of
from tilelang.layout.convert import convert
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.loops import loop_layout, replicated, vector_widths
from tilelang.layout.propagate import Reason, State, check, propagate
from tilelang.layout.relations import index_facts, spread

# Weights, in instructions. A memory access occupies the load/store unit for about four issue
# slots; what cannot be compiled at all loses against everything that can.
MEMORY = 4
IMPOSSIBLE = 1e9
SECTOR = 32  # bytes, the unit global memory moves
UNKNOWN_STRIDE = 1 << 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout to try, and how to describe it."""

    var: Variable
    layout: Fragment
    note: str


def choose(state: State, free: list[Variable]) -> Reason:
    """The next free variable to decide, with the cheapest layout for it."""
    for var in free:
        if var.kind is Kind.SHARED:
            return Reason(var, Layout.row_major(var.shape), None, note="row-major by default")
    group = _component(state, free)
    tried = [c for var in _seeds(state, group) for c in _candidates(state, var)]
    if len(tried) == 1:
        best = tried[0]
    else:
        best = min(tried, key=lambda candidate: _price_of(candidate, state, group))
    return Reason(best.var, best.layout, None, note=best.note)


def _component(state: State, free: list[Variable]) -> list[Variable]:
    """The first free variable and all free ones its choice may reach."""
    group, pending = {free[0]}, [free[0]]
    while pending:
        for constraint in state.touching[pending.pop()]:
            for var in variables_of(constraint):
                if var not in state.layouts and var not in group:
                    group.add(var)
                    pending.append(var)
    return [var for var in free if var in group]


def _seeds(state: State, group: list[Variable]) -> list[Variable]:
    """Variables worth starting from: the largest loop, and buffers no loop determines."""
    loops = [var for var in group if var.kind is Kind.LOOP]
    tiles = [var for var in group if var.kind is Kind.FRAGMENT]
    reduced = [var for var in tiles if _known_results(state, var)]
    if reduced or not loops:
        return [max(reduced or tiles, key=_size)]
    awkward = [
        c.buffer
        for var in loops
        for c in state.touching[var]
        if isinstance(c, Access) and c.buffer not in state.layouts and _is_awkward(c, state)
    ]
    return list(dict.fromkeys([max(loops, key=_size), *awkward]))


def _is_awkward(access: Access, state: State) -> bool:
    """Whether the loop says too little, or too much, about where the buffer should live."""
    facts = state.facts(access)
    gathers = access.mode is not Mode.READ and not facts.is_injective
    return gathers or not facts.is_surjective or facts.is_anywhere


def _candidates(state: State, var: Variable) -> Iterator[Candidate]:
    threads = state.problem.threads
    if var.kind is Kind.LOOP:
        yield from _loop_candidates(state, var)
        return
    for result in _known_results(state, var):
        layout = _dealt_out(result, state)
        yield Candidate(var, layout, f"among the owners of {result.out}")
    for width in vector_widths(var.shape[-1], var.bits):
        layout = loop_layout(var.shape, threads, width)
        yield Candidate(var, layout, f"{width} wide over {threads} threads")
    if any(isinstance(c, Access) and c.index is None for c in state.touching[var]):
        yield Candidate(var, replicated(var.shape, threads), "a copy in every thread")


def _known_results(state: State, var: Variable) -> list[Reduced]:
    """Reductions of `var` whose result has its place already."""
    return [
        c
        for c in state.touching[var]
        if isinstance(c, Reduced) and c.source == var and c.out in state.layouts
    ]


def _dealt_out(result: Reduced, state: State) -> Fragment:
    """The source of a reduction, spread over the threads that are to know its result."""
    shape, axis = result.source.shape, result.dim % len(result.source.shape)
    kept = shape[:axis] + shape[axis + 1 :] or (1,)
    index = Layout(shape, lambda *x: x[:axis] + x[axis + 1 :] or (0,))
    return spread(state.fragment(result.out), index_facts(index, shape, kept), shape, 1)


def _loop_candidates(state: State, var: Variable) -> Iterator[Candidate]:
    threads = state.problem.threads
    accesses = [c for c in state.touching[var] if isinstance(c, Access)]
    memory = [c for c in state.touching[var] if isinstance(c, Memory)]
    bits = min([*(c.bits for c in memory), *(c.buffer.bits for c in accesses)], default=32)
    limits = [c.limit for c in memory if c.limit is not None]
    limit = min(limits) if limits else None
    least = max((c.least for c in memory), default=1)
    last = len(var.shape) - 1
    unit = [d for c in memory for d, stride in enumerate(c.strides) if stride == 1]
    for dim in dict.fromkeys([last, *unit]):
        widths = vector_widths(var.shape[dim], bits, limit)
        for width in [w for w in widths if w >= least] or widths:
            layout = loop_layout(var.shape, threads, width, dim)
            yield Candidate(var, layout, f"{width} wide along dimension {dim}")
    if any(c.index is None and c.mode is not Mode.READ for c in accesses):
        # Only a thread that runs every iteration is sure to run those that hit its elements.
        yield Candidate(var, replicated(var.shape, threads), "all of it in every thread")
    for access in accesses:
        if access.mode is Mode.READ and access.index is not None and access.buffer in state.layouts:
            tile, facts = state.fragment(access.buffer), state.facts(access)
            if facts.touched is None and not facts.is_injective and tile.replicas < threads:
                for width in vector_widths(var.shape[last], bits, limit):
                    layout = spread(tile, facts, var.shape, width)
                    yield Candidate(
                        var, layout, f"{width} wide among the owners of {access.buffer}"
                    )


def _price_of(candidate: Candidate, state: State, group: list[Variable]) -> float:
    """What the whole group costs when it starts from this candidate."""
    trial = state.branch()
    trial.assign(Reason(candidate.var, candidate.layout, None))
    propagate(trial)
    while rest := [var for var in group if var not in trial.layouts]:
        following = _candidates(trial, max(rest, key=_size))
        best = min(following, key=lambda one: _local_price(one, trial))
        trial.assign(Reason(best.var, best.layout, None))
        propagate(trial)
    return sum(_price(var, trial) for var in group) + _conversions(trial, group)


def _local_price(candidate: Candidate, state: State) -> float:
    """What a candidate costs by itself and with what is known, not with what follows from it."""
    trial = state.branch()
    trial.assign(Reason(candidate.var, candidate.layout, None))
    return _price(candidate.var, trial) + _conversions(trial, [candidate.var])


def _price(var: Variable, state: State) -> float:
    tile = state.fragment(var)
    if var.kind is Kind.FRAGMENT:
        return tile.registers(var.bits)
    accesses = (c for c in state.touching[var] if isinstance(c, Memory))
    return tile.slots + sum(memory_price(tile, access) for access in accesses)


def memory_price(nest: Fragment, access: Memory) -> float:
    """Instructions a thread spends on one memory access of a loop laid out as `nest`."""
    strides = tuple(UNKNOWN_STRIDE if s is None else s for s in access.strides)
    widest = min(max(1, 128 // access.bits), access.limit or 128)
    units = [d for d, stride in enumerate(strides) if stride == 1]
    width = max((nest.vector_width(d, widest) for d in units), default=1)
    lanes = np.argwhere((nest.map.table[1] == 0) & (nest.map.table[0] < 32))[:, :-1]
    starts = lanes @ np.array(strides, dtype=np.int64) * access.bits // 8
    span = max(1, width * access.bits // 8)
    sectors = len(np.unique(np.concatenate([starts // SECTOR, (starts + span - 1) // SECTOR])))
    ideal = max(1, -(-len(np.unique(starts)) * span // SECTOR))
    return MEMORY * -(-nest.slots // width) * max(1.0, sectors / ideal)


def _conversions(state: State, group: list[Variable]) -> float:
    touched = {id(c): c for var in group for c in state.touching[var]}
    total = 0.0
    for constraint in touched.values():
        found = check(constraint, state)
        if found is not None:
            conversion = convert(constraint, found, state)
            total += IMPOSSIBLE if conversion is None else conversion(()).cost
    return total


def _size(var: Variable) -> int:
    return int(np.prod(var.shape))
