"""How does each shared tile lie, given every way it is used, and what conflicts are left?

Once fragments and loops have their layouts, it is known what the lanes of a warp touch at once.
Each candidate layout is priced over all uses in passes over shared memory; the plainest of the
cheapest is taken. A layout of the author's is only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tilelang.layout.banks import bank_conflicts
from tilelang.layout.constraints import Mode, Origin, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.swizzle import SwizzleMode
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.demands import EngineUse, SharedUse
from tilelang.layouts.machine import Machine
from tilelang.layouts.swizzles import Candidate, candidates, named, plain, swizzle_name
from tilelang.program.buffer import Buffer

# What an instruction costs beside the passes it makes, and an element of padding.
INSTRUCTION, PADDING = 0.25, 1e-3
# Vector groups of a loop that are looked at; the others lie alike, further on.
SAMPLES = 4


@dataclass(frozen=True, slots=True)
class BankUse:
    """One use of a tile: how many ways its lanes collide (1: not at all)."""

    origin: Origin
    mode: Mode
    degree: int
    what: str = ""

    def __str__(self) -> str:
        how = "no conflicts" if self.degree <= 1 else f"{self.degree}-way conflicts"
        return f"{self.origin.op}: {how}"


@dataclass(frozen=True, slots=True, eq=False)
class SharedLayout:
    """The layout of a shared tile, why, and what is left of conflicts."""

    layout: Layout
    why: str
    uses: tuple[BankUse, ...] = ()
    annotation: Origin | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    """What the lanes of one warp touch at once: the row-major position of each lane's first
    element, `width` elements from there, `count` times."""

    use: SharedUse
    positions: tuple[int, ...]
    width: int
    count: float


@dataclass(frozen=True, slots=True)
class _Cost:
    degree: int
    passes: int
    instructions: int

    @property
    def is_ideal(self) -> bool:
        return self.degree <= 1 and self.instructions == 1


def choose_layout(
    buffer: Buffer,
    uses: Sequence[SharedUse],
    nests: Mapping[Variable, object],
    machine: Machine,
    pinned: str | None = None,
    engines: Sequence[EngineUse] = (),
) -> SharedLayout:
    """The best layout for all uses; row-major where `pinned` says why nothing else may be.

    Of those that every engine takes, where there is one; else the engine that gets none says so.
    """
    shape = known_shape(buffer)
    assert shape is not None
    bits = buffer.dtype.bits
    found = [access for use in uses for access in _accesses(use, nests, shape, bits, machine)]
    first = plain(shape)
    if pinned is not None:
        return SharedLayout(first.layout, f"row-major, because {pinned}",
                            _bank_uses(first, found, bits, machine))  # fmt: skip
    legal = legal_candidates(shape, bits, engines)
    if legal:
        best = _cheapest(legal, found, bits, machine)
        left = _bank_uses(best, found, bits, machine)
        why = f"{best.name}, the best of what {_named(engines)} can use"
        return SharedLayout(best.layout, why, left)
    if not found:
        return SharedLayout(first.layout, "row-major, as no warp reads or writes it here")
    best = _best(shape, bits, found, machine)
    by_columns = _by_columns(uses, nests, shape, bits, machine, best, found)
    if by_columns is not None:
        return by_columns
    left = _bank_uses(best, found, bits, machine)
    return SharedLayout(best.layout, _reason(best, left, first, found, bits, machine), left)


def _by_columns(
    uses: Sequence[SharedUse], nests: Mapping[Variable, object], shape: tuple[int, ...], bits: int,
    machine: Machine, rows: Candidate, by_rows: Sequence[_Access],
) -> SharedLayout | None:  # fmt: skip
    """The best layout that stores columns, if it costs less than `rows`, for a tile that is only
    written along them: neighbours in the tensor it comes from are the rows of a column."""
    turned = [_turned(use) for use in uses]
    if len(shape) != 2 or any(use is None for use in turned):
        return None
    other = shape[::-1]
    written = [
        (max(a.width for a in one), max(a.width for a in two))
        for one, two in (
            (list(_accesses(use, nests, shape, bits, machine)),
             list(_accesses(back, nests, other, bits, machine)))
            for use, back in zip(uses, turned, strict=True)
            if back is not None and use.nest is not None and use.mode is not Mode.READ
        ) if one and two
    ]  # fmt: skip
    if not written or not all(along < down for along, down in written):
        return None
    found = [a for use in turned if use for a in _accesses(use, nests, other, bits, machine)]
    best = _best(other, bits, found, machine)
    if _price(best, found, bits, machine) >= _price(rows, by_rows, bits, machine):
        return None
    columns = Layout(shape, lambda i, j: best.layout(j, i), out_shape=best.layout.out_shape)
    left = _bank_uses(best, found, bits, machine)
    worst = max(use.degree for use in left)
    rest = "no bank conflicts" if worst <= 1 else f"at most {worst}-way bank conflicts"
    return SharedLayout(
        columns, f"by columns, as it is written, {best.name}: {rest} in {len(left)} uses", left
    )


def _turned(use: SharedUse) -> SharedUse | None:
    """A use with the two dimensions of the tile exchanged."""
    if use.elements is not None:
        return replace(use, elements=use.elements[::-1])
    return use.turned


def count_conflicts(
    buffer: Buffer,
    layout: Layout,
    annotation: Origin,
    uses: Sequence[SharedUse],
    nests: Mapping[Variable, object],
    machine: Machine,
) -> SharedLayout:
    """The conflicts of a layout that the author chose."""
    shape, bits = layout.shape, buffer.dtype.bits
    found = [access for use in uses for access in _accesses(use, nests, shape, bits, machine)]
    given = Candidate.of("given", layout)
    return SharedLayout(
        layout, f"given by {annotation}", _bank_uses(given, found, bits, machine), annotation
    )


def legal_candidates(
    shape: tuple[int, ...], bits: int, engines: Sequence[EngineUse]
) -> tuple[Candidate, ...]:
    """What all engines take, widest swizzle first; empty where there is no engine."""
    if not engines:
        return ()
    modes = set.intersection(*(set(use.modes) for use in engines))
    found = [c for c in named(shape, bits) if any(c.name == swizzle_name(m) for m in modes)]
    return (*found, *([plain(shape)] if SwizzleMode.NONE in modes else []))


def _named(engines: Sequence[EngineUse]) -> str:
    return " and ".join(dict.fromkeys(use.origin.op for use in engines))


def _best(
    shape: tuple[int, ...], bits: int, found: Sequence[_Access], machine: Machine
) -> Candidate:
    tried: list[Candidate] = []
    for candidate in candidates(shape, bits):
        if all(_cost(candidate, access, bits, machine).is_ideal for access in found):
            return candidate
        tried.append(candidate)
    return _cheapest(tried, found, bits, machine)


def _cheapest(
    tried: Sequence[Candidate], found: Sequence[_Access], bits: int, machine: Machine
) -> Candidate:
    return min(tried, key=lambda candidate: _price(candidate, found, bits, machine))


def _price(candidate: Candidate, found: Sequence[_Access], bits: int, machine: Machine) -> float:
    total = candidate.extra * PADDING
    for access in found:
        cost = _cost(candidate, access, bits, machine)
        total += access.count * (cost.passes + INSTRUCTION * cost.instructions)
    return total


def _reason(
    best: Candidate, left: Sequence[BankUse], first: Candidate, found: Sequence[_Access],
    bits: int, machine: Machine,
) -> str:  # fmt: skip
    worst = max(use.degree for use in left)
    rest = "no bank conflicts" if worst <= 1 else f"at most {worst}-way bank conflicts"
    text = f"{best.name}: {rest} in {len(left)} use{'s' if len(left) > 1 else ''}"
    if best is first:
        return text
    before = max(_bank_uses(first, found, bits, machine), key=lambda use: use.degree)
    return f"{text}; row-major has {before.degree}-way ones in {before.origin.op}"


def _bank_uses(
    candidate: Candidate, found: Sequence[_Access], bits: int, machine: Machine
) -> tuple[BankUse, ...]:
    """The worst of each use, in program order."""
    degrees: dict[int, BankUse] = {}
    for access in found:
        degree = _cost(candidate, access, bits, machine).degree
        known = degrees.get(id(access.use))
        if known is None or degree > known.degree:
            use = access.use
            degrees[id(use)] = BankUse(use.origin, use.mode, degree, use.what)
    return tuple(degrees.values())


def _accesses(
    use: SharedUse, nests: Mapping[Variable, object], shape: tuple[int, ...], bits: int,
    machine: Machine,
) -> Iterator[_Access]:  # fmt: skip
    if use.patterns:
        for pattern in use.patterns:
            lanes = np.array(pattern.lanes, dtype=np.int64).T
            yield _Access(use, _positions(lanes, shape), pattern.width, use.count * use.times)
        return
    assert use.nest is not None and use.elements is not None
    layout = nests.get(use.nest.variable)
    if isinstance(layout, Fragment):
        yield from _of_loop(use, layout, shape, bits, machine)


def _of_loop(
    use: SharedUse, layout: Fragment, shape: tuple[int, ...], bits: int, machine: Machine
) -> Iterator[_Access]:
    """What the first warp that runs a loop touches, one group of slots at a time."""
    assert use.elements is not None
    elements = use.elements.reshape(len(shape), -1)
    flat = np.asarray(np.ravel_multi_index(tuple(elements), shape))
    threads = layout.map.table[0].reshape(layout.size, layout.replicas)
    slots = layout.map.table[1].reshape(layout.size, layout.replicas)
    warp = int(threads.min()) // machine.warp
    iteration, replica = np.nonzero(threads // machine.warp == warp)
    grid = np.full((machine.warp, layout.slots), -1, dtype=np.int64)
    lane = threads[iteration, replica] % machine.warp
    grid[lane, slots[iteration, replica]] = flat[iteration]
    grid = grid[(grid >= 0).any(axis=1)]
    width = _vector(grid, max(1, 128 // bits))
    starts = grid[:, ::width]
    columns = np.unique(np.linspace(0, starts.shape[1] - 1, SAMPLES).astype(int))
    warps = max(1, (layout.thread_extent + machine.warp - 1) // machine.warp)
    count = starts.shape[1] * warps * use.times / len(columns)
    for column in columns:
        held = starts[:, column]
        held = held[held >= 0]
        if len(held):
            yield _Access(use, tuple(held.tolist()), width, count)


def _vector(grid: np.ndarray, widest: int) -> int:
    """How many neighbouring slots of every lane are aligned runs of memory.

    A lane may have nothing in a group (-1): the last round of a loop need not fill the block.
    """
    width = 1
    while width * 2 <= widest and grid.shape[1] % (width * 2) == 0:
        groups = grid.reshape(len(grid), -1, width * 2)
        used = groups[(groups >= 0).any(axis=2)]
        runs = used == used[:, :1] + np.arange(width * 2)
        if not runs.all() or np.any(used[:, 0] % (width * 2)):
            break
        width *= 2
    return width


def _positions(lanes: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    limits = np.array(shape)[:, None]
    flat: np.ndarray = np.asarray(np.ravel_multi_index(tuple(np.minimum(lanes, limits - 1)), shape))
    return tuple(flat.tolist())


def _cost(candidate: Candidate, access: _Access, bits: int, machine: Machine) -> _Cost:
    found = _counted(candidate, access.positions, access.width, bits, machine.banks)
    if access.use.what.startswith("ldmatrix") and found.instructions > 1:
        # There is no half of this instruction: every element is loaded by itself.
        return _Cost(found.degree, max(found.passes, access.width), access.width)
    return found


@lru_cache(maxsize=1 << 15)
def _counted(
    candidate: Candidate, positions: tuple[int, ...], width: int, bits: int, banks: int
) -> _Cost:
    """Degree, passes and instructions of one access; a vector the layout breaks up is split."""
    places = np.array(positions, dtype=np.int64)
    spread = candidate.offsets[
        np.minimum(places[:, None] + np.arange(width), len(candidate.offsets) - 1)
    ]
    vector = min(width, candidate.vector)
    size = max(1, vector * bits // 8)
    degree, passes = 1, 0
    for start in range(0, width, vector):
        addresses = (spread[:, start] * bits // 8 // size * size).tolist()
        counted = bank_conflicts(addresses, size, banks)
        degree, passes = max(degree, counted.degree), passes + counted.transactions
    return _Cost(degree, passes, width // vector)
