"""Which matrix instruction, and which grid of warps, multiplies a tile?

The deepest one whose shape divides the tile and whose warps can share it; layout inference and
the code generator ask the same function, so that they cannot disagree.

    >>> usable = instructions("float16", "float16", "float32", 80)
    >>> chosen = choose_instruction(usable, 64, 64, 24, warps=4)
    >>> chosen.atom.shape, str(chosen.grid)
    ('m16n8k8', '2x2 warps')
    >>> choose_instruction(usable, 64, 64, 20, warps=4)
    Unsuitable(what='k', m=16, n=8, k=8)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from tilelang.layout.atoms import ATOMS, LANES, Atom
from tilelang.layout.gemm import GemmWarpPolicy, NoPartition, WarpGrid, partition_warps
from tilelang.layout.mfma import MFMA_ATOMS, WAVE
from tilelang.target import Kind

# An instruction of full depth takes 32 bytes of each row along K; deeper ones gain nothing.
DEPTH_BITS: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """The matrix instructions of one kind of target.

    `name` is what people call one of them, `prefix` how their device operations begin, `header`
    where those are. `multiplied_as` says for which types an operand is rounded first.
    """

    name: str
    kind: Kind
    prefix: str
    header: str
    lanes: int
    atoms: tuple[Atom, ...]
    multiplied_as: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def seen_as(self, dtype: str) -> str:
        """The type in which the instructions see an operand."""
        return self.multiplied_as.get(dtype, dtype)


# Tensor cores multiply float32 as tf32.
MMA_SYNC: Final = Family(
    "mma.sync", "cuda", "mma", "mma.h", LANES, ATOMS, MappingProxyType({"float32": "tfloat32"})
)
MFMA: Final = Family("mfma", "hip", "mfma", "mfma.h", WAVE, MFMA_ATOMS)
FAMILIES: Final[tuple[Family, ...]] = (MMA_SYNC, MFMA)
# What the capability row of a target calls them; what is not here has no tabulated fragments.
FAMILY_OF: Final[Mapping[str, Family]] = {
    "mma": MMA_SYNC, "wgmma": MMA_SYNC, "tcgen05": MMA_SYNC, "mfma": MFMA,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """The instruction and its grid of warps. `passed` are the deeper and taller ones before it,
    each with the first condition that failed."""

    atom: Atom
    grid: WarpGrid
    passed: tuple[tuple[Atom, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unsuitable:
    """No instruction divides the tile: `what` fails, and `m`, `n` and `k` must be multiples."""

    what: Literal["k", "tile"]
    m: int
    n: int
    k: int


def instructions(
    a: str, b: str, accumulator: str, arch: int, family: Family = MMA_SYNC
) -> tuple[Atom, ...]:
    """What multiplies `a` by `b` on architecture `arch` of a family, tallest and deepest first."""
    left, right = family.seen_as(a), family.seen_as(b)
    found = [
        atom
        for atom in family.atoms
        if {left, right} <= set(atom.inputs)
        and accumulator in atom.accumulators
        and atom.min_arch <= arch
        and atom.k * atom.bits <= DEPTH_BITS
        and (left == right or atom.bits < 16)
    ]
    return tuple(sorted(found, key=lambda atom: (-atom.m, -atom.k)))


def choose_instruction(
    usable: Sequence[Atom],
    m: int,
    n: int,
    k: int,
    warps: int,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
) -> Chosen | Unsuitable | NoPartition:
    """The first of `usable` that does an `m` x `n` x `k` tile, or what stands in the way."""
    passed = [
        (atom, why) for atom in usable if (why := _misfit(atom, m, n, k)) is not None
    ]  # fmt: skip
    smallest = Unsuitable("k", *(min(getattr(a, d) for a in usable) for d in "mnk"))
    deep = [atom for atom in usable if k % atom.k == 0]
    if not deep:
        return smallest
    fitting = [atom for atom in deep if m % atom.m == 0 and n % atom.n == 0]
    if not fitting:
        m, n = (min(getattr(a, d) for a in deep) for d in "mn")
        return Unsuitable("tile", m, n, smallest.k)
    found: WarpGrid | NoPartition | None = None
    for atom in fitting:
        found = partition_warps(m, n, warps, policy, atom.m, atom.n)
        if isinstance(found, WarpGrid):
            before = usable[: usable.index(atom)]
            return Chosen(atom, found, tuple(x for x in passed if x[0] in before))
        passed.append((atom, f"{warps} warps cannot share its {atom.m} x {atom.n} blocks"))
    assert isinstance(found, NoPartition)
    # The last one is the smallest, which would have been the easiest to share.
    return found


def _misfit(atom: Atom, m: int, n: int, k: int) -> str | None:
    """Which size of a tile an instruction does not divide."""
    for name, size, part in (("K", k, atom.k), ("M", m, atom.m), ("N", n, atom.n)):
        if size % part:
            return f"{name} = {size} is no multiple of {part}"
    return None
