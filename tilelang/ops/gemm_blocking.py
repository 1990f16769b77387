"""Which part of C does a core keep in registers while it multiplies?

Pure arithmetic on sizes: the register tile for a vector width and register count, and how a
dimension splits into blocks of that size and a remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Results of a fused multiply-add can be used this many multiply-adds later (4 cycles latency, up
# to 2 started per cycle): fewer accumulators than this leave the unit idle.
_CHAINS = 8
_MOST_ROWS, _MOST_VECTORS = 14, 4


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """`rows` rows of `vectors` vectors with `lanes` elements each."""

    rows: int
    vectors: int
    lanes: int

    def __post_init__(self) -> None:
        if min(self.rows, self.vectors, self.lanes) < 1:
            raise ValueError(f"empty register tile {self}")

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def cycles(self) -> float:
        """Rough cost of one step along K: multiply-adds, loads, and idle chains."""
        work = self.rows * self.vectors
        loads = self.rows + self.vectors
        return max(work, 0.75 * loads, _CHAINS / 2) + 0.1 * loads


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` equal blocks of `size` from `start`; as vectors where lanes > 1."""

    start: int
    count: int
    size: int
    lanes: int = 1

    @property
    def vectors(self) -> int:
        return self.size // self.lanes


def pieces(total: int, size: int, lanes: int) -> tuple[Piece, ...]:
    """Cover `total` by blocks of `size`, then by one block of whatever whole vectors remain,
    then by shorter vectors of powers of two."""
    found = []
    start = 0
    if total >= size:
        found.append(Piece(0, total // size, size, lanes))
        start = total - total % size
    rest = total - start
    while rest >= lanes > 1:
        whole = rest - rest % lanes
        found.append(Piece(start, 1, whole, lanes))
        start, rest = start + whole, rest - whole
    while rest and lanes > 1:
        lanes //= 2
        if rest >= lanes:
            found.append(Piece(start, 1, lanes, lanes))
            start, rest = start + lanes, rest - lanes
    if rest:
        found.append(Piece(start, 1, rest, 1))
    return tuple(found)


@lru_cache(maxsize=256)
def choose_tile(m: int, n: int, lanes: int, registers: int) -> RegisterTile:
    """The register tile that costs least for an m x n result, remainders included."""
    best: tuple[float, RegisterTile] | None = None
    for vectors in range(1, _MOST_VECTORS + 1):
        for rows in range(1, _MOST_ROWS + 1):
            if rows * vectors + vectors + 1 > registers:
                break
            tile = RegisterTile(rows, vectors, lanes)
            cost = sum(
                r.count * c.count * RegisterTile(r.size, c.vectors, c.lanes).cycles
                for r in pieces(m, rows, 1)
                for c in pieces(n, tile.columns, lanes)
            )
            if best is None or cost < best[0] - 1e-9:
                best = cost, tile
    assert best is not None
    return best[1]
