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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tilelang.layout.atoms import Atom, find_atoms
from tilelang.layout.gemm import GemmWarpPolicy, NoPartition, WarpGrid, partition_warps

# What the tensor cores multiply float32 as.
MULTIPLIED_AS: Final = {"float32": "tfloat32"}
# An instruction of full depth takes 32 bytes of each row along K; deeper ones gain nothing.
DEPTH_BITS: Final = 256


@dataclass(frozen=True, slots=True)
class Chosen:
    """The instruction and its grid of warps."""

    atom: Atom
    grid: WarpGrid


@dataclass(frozen=True, slots=True)
class Unsuitable:
    """No instruction divides the tile: `what` fails, and `m`, `n` and `k` must be multiples."""

    what: Literal["k", "tile"]
    m: int
    n: int
    k: int


def multiplied_as(dtype: str) -> str:
    """The type in which the tensor cores see an operand."""
    return MULTIPLIED_AS.get(dtype, dtype)


def instructions(a: str, b: str, accumulator: str, arch: int) -> tuple[Atom, ...]:
    """What can multiply `a` by `b`, tallest and deepest first."""
    return tuple(
        atom
        for atom in find_atoms(multiplied_as(a), accumulator, arch)
        if multiplied_as(b) in atom.inputs and atom.k * atom.bits <= DEPTH_BITS
    )


def choose_instruction(
    usable: Sequence[Atom],
    m: int,
    n: int,
    k: int,
    warps: int,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
) -> Chosen | Unsuitable | NoPartition:
    """The first of `usable` that does an `m` x `n` x `k` tile, or what stands in the way."""
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
            return Chosen(atom, found)
    assert isinstance(found, NoPartition)
    # The last one is the smallest, which would have been the easiest to share.
    return found
