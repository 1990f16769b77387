"""How a block of warps shares one `T.gemm`: the warp grid, and the fragments of A, B and C.

Warps form a grid over the output tile; warp `wm + m_warps * wn` computes a contiguous block.
A is held once per warp column and B once per warp row, which is what `replicas` says.

    >>> grid = partition_warps(64, 64, warps=4, policy=GemmWarpPolicy.FullRow)
    >>> str(accumulator(64, 64, grid, ATOMS[4]))
    'thread=i//16*32 + i%8*4 + j//2%4'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from tilelang.layout.atoms import Atom
from tilelang.layout.fragment import Fragment

MAX_WARPS = 32


class GemmWarpPolicy(IntEnum):
    """How `T.gemm` splits its warps: near square, all along M, or all along N."""

    Square = 0
    FullRow = 1
    FullCol = 2


@dataclass(frozen=True, slots=True)
class WarpGrid:
    """`m_warps` x `n_warps` warps over the output tile."""

    m_warps: int
    n_warps: int

    @property
    def warps(self) -> int:
        """How many there are."""
        return self.m_warps * self.n_warps

    def __str__(self) -> str:
        return f"{self.m_warps}x{self.n_warps} warps"


@dataclass(frozen=True, slots=True)
class NoPartition:
    """No grid of `warps` warps covers an `m` x `n` tile of whole instructions; what would do."""

    m: int
    n: int
    warps: int
    unit_m: int
    unit_n: int
    other_warps: tuple[int, ...]
    other_m: tuple[int, ...]
    other_n: tuple[int, ...]
    other_tiles: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return (
            f"no grid of {self.warps} warps covers a {self.m}x{self.n} tile with whole "
            f"{self.unit_m}x{self.unit_n} instructions"
        )

    @property
    def help(self) -> str:
        """What to change, where a warp has 32 threads."""
        return self.help_for(32)

    def help_for(self, lanes: int) -> str:
        """What to change, where a warp has `lanes` threads."""
        ways = []
        if self.other_warps:
            ways.append(f"use {_either(w * lanes for w in self.other_warps)} threads")
        if self.other_n:
            ways.append(f"make N {_either(self.other_n)}")
        if self.other_m:
            ways.append(f"make M {_either(self.other_m)}")
        if self.other_tiles:
            ways.append(f"make the tile {_either(f'{m}x{n}' for m, n in self.other_tiles)}")
        return ", or ".join(ways)


def partition_warps(
    m: int,
    n: int,
    warps: int,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    unit_m: int = 16,
    unit_n: int = 8,
    rank: Callable[[int, int, WarpGrid], tuple[float, ...]] | None = None,
) -> WarpGrid | NoPartition:
    """The warp grid for an `m` x `n` tile of `unit_m` x `unit_n` instructions.

    Only grids that cover the tile exactly count. `FullRow` takes the most warps along M,
    `FullCol` along N; `Square` the one whose blocks are closest to squares, which load least for
    what they compute; of equals, the one closest to the proportions of the tile. `rank` may
    decide instead, the least wins.
    """
    grids = _grids(m, n, warps, unit_m, unit_n)
    if not grids:
        return _no_partition(m, n, warps, unit_m, unit_n)
    match policy:
        case GemmWarpPolicy.FullRow:
            return max(grids, key=lambda grid: grid.m_warps)
        case GemmWarpPolicy.FullCol:
            return max(grids, key=lambda grid: grid.n_warps)
        case GemmWarpPolicy.Square:
            by = rank or near_square
            return min(grids, key=lambda grid: by(m, n, grid))


def near_square(m: int, n: int, grid: WarpGrid) -> tuple[float, ...]:
    """Grows as the blocks of a grid depart from squares, and load more for what they compute."""
    edges = m // grid.m_warps + n // grid.n_warps
    return edges, *in_proportion(m, n, grid)


def in_proportion(m: int, n: int, grid: WarpGrid) -> tuple[float, ...]:
    """Grows as the blocks of a grid depart from the proportions of the tile."""
    # (m/m_warps) / (n/n_warps) against m/n: the sizes cancel out.
    return abs(math.log(grid.n_warps / grid.m_warps)), grid.n_warps


@cache
def accumulator(m: int, n: int, grid: WarpGrid, atom: Atom) -> Fragment:
    """C and D of a block-wide gemm."""
    block = (m // grid.m_warps, n // grid.n_warps)
    _check(atom.c, block, (m, n))
    warp = atom.c.repeat((block[0] // atom.m, block[1] // atom.n))
    return warp.repeat((grid.m_warps, grid.n_warps), repeat_on_thread=True, lower_dim_first=False)


@cache
def operand_a(m: int, k: int, grid: WarpGrid, atom: Atom, transposed: bool = False) -> Fragment:
    """A of a block-wide gemm, (m, k), or (k, m) when it is stored transposed."""
    block = (m // grid.m_warps, k)
    _check(atom.a, block, (m, k))
    warp = atom.a.repeat((block[0] // atom.m, k // atom.k))
    rows = warp.repeat((grid.m_warps, 1), repeat_on_thread=True)
    fragment = rows.replicate(grid.n_warps)
    return fragment.permute((1, 0)) if transposed else fragment


@cache
def operand_b(k: int, n: int, grid: WarpGrid, atom: Atom, transposed: bool = False) -> Fragment:
    """B of a block-wide gemm, (k, n), or (n, k) when it is stored transposed."""
    block = (k, n // grid.n_warps)
    _check(atom.b, block, (k, n))
    warp = atom.b.repeat((k // atom.k, block[1] // atom.n))
    column = warp.replicate(grid.m_warps)
    fragment = column.repeat((1, grid.n_warps), repeat_on_thread=True)
    return fragment.permute((1, 0)) if transposed else fragment


def _grids(m: int, n: int, warps: int, unit_m: int, unit_n: int) -> list[WarpGrid]:
    return [
        WarpGrid(rows, warps // rows)
        for rows in range(1, warps + 1)
        if warps % rows == 0 and m % (unit_m * rows) == 0 and n % (unit_n * warps // rows) == 0
    ]


def _no_partition(m: int, n: int, warps: int, unit_m: int, unit_n: int) -> NoPartition:
    counts = sorted(
        (w for w in range(1, MAX_WARPS + 1) if _grids(m, n, w, unit_m, unit_n)),
        key=lambda w: abs(w - warps),
    )
    legal_m = _nearest(m, unit_m, warps, lambda size: bool(_grids(size, n, warps, unit_m, unit_n)))
    legal_n = _nearest(n, unit_n, warps, lambda size: bool(_grids(m, size, warps, unit_m, unit_n)))
    tiles = () if legal_m or legal_n else _nearest_tiles(m, n, warps, unit_m, unit_n)
    closest = tuple(sorted(counts[:2]))
    return NoPartition(m, n, warps, unit_m, unit_n, closest, legal_m, legal_n, tiles)


def _nearest(size: int, unit: int, warps: int, legal: Callable[[int], bool]) -> tuple[int, ...]:
    """The closest legal sizes below and above; none further than one instruction per warp."""
    below = range(size // unit * unit, 0, -unit)
    above = range((size // unit + 1) * unit, size + unit * warps + 1, unit)
    found = (next(filter(legal, sizes), None) for sizes in (below, above))
    return tuple(size for size in found if size is not None)


def _nearest_tiles(
    m: int, n: int, warps: int, unit_m: int, unit_n: int
) -> tuple[tuple[int, int], ...]:
    """The closest legal tile among the smaller ones, and among those that hold this one."""
    tiles = [
        (rows, columns)
        for rows in range(unit_m, m + unit_m * warps + 1, unit_m)
        for columns in range(unit_n, n + unit_n * warps + 1, unit_n)
        if _grids(rows, columns, warps, unit_m, unit_n)
    ]
    inside = [tile for tile in tiles if tile[0] <= m and tile[1] <= n]
    around = [tile for tile in tiles if tile[0] >= m and tile[1] >= n]

    def distance(tile: tuple[int, int]) -> int:
        return abs(tile[0] * tile[1] - m * n)

    return tuple(min(group, key=distance) for group in (inside, around) if group)


def _check(atom: Fragment, block: tuple[int, int], tile: tuple[int, int]) -> None:
    if any(b < 1 or b % a for a, b in zip(atom.shape, block, strict=True)):
        raise ValueError(f"instructions of {atom.shape} do not cover {block} of a tile of {tile}")


def _either(values: Iterable[int | str]) -> str:
    return " or ".join(map(str, values))
