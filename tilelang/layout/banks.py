"""How many bank conflicts a warp's access to shared memory has, counted exactly.

Shared memory is `banks` columns of 4-byte words, and serves one word per bank at a time. Lanes
that want the same word share it; lanes that want different words of one bank queue up, and the
*degree* is the length of the longest queue. Accesses of 8 and 16 bytes a lane are served in two
and four phases (half and quarter warps), so that 16 lanes x 8 bytes or 8 lanes x 16 bytes fill
the 128 bytes of one phase. (CUDA C++ Programming Guide, shared memory of compute capability 5.x
and later; AMD's LDS behaves alike, with 32 or 64 banks.)

    >>> tile = Layout.row_major((32, 32))
    >>> conflicts(tile, reads_column(32), bits=32).degree
    32
    >>> conflicts(Layout((32, 32), lambda i, j: (i, j ^ i)), reads_column(32), bits=32).degree
    1
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout

WARP = 32
BANKS = 32
BANK_BYTES = 4

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conflicts:
    """What an access costs: `degree` 1 is conflict-free.

    `transactions` counts the passes over shared memory, `ideal` those of a conflict-free layout.
    """

    degree: int
    transactions: int
    ideal: int

    def __str__(self) -> str:
        return "conflict-free" if self.degree <= 1 else f"{self.degree}-way bank conflict"

    @property
    def wasted(self) -> int:
        """Passes that a better layout would save."""
        return self.transactions - self.ideal


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a warp does at once: the first element of each lane's vector of `width` elements
    along the last dimension. A wider vector than the layout holds is split."""

    name: str
    lanes: tuple[Index, ...]
    width: int = 1

    def __post_init__(self) -> None:
        if not self.lanes or self.width < 1:
            raise ValueError(f"pattern {self.name!r} needs lanes and a positive width")


def bank_conflicts(addresses: Sequence[int], width: int, banks: int = BANKS) -> Conflicts:
    """The conflicts of one access: the byte address of each lane, `width` bytes read by each."""
    if width not in (1, 2, 4, 8, 16):
        raise ValueError(f"an access is 1, 2, 4, 8 or 16 bytes wide, got {width}")
    for address in addresses:
        if address % width:
            raise ValueError(f"address {address} is not aligned to {width} bytes")
    group = max(1, banks * BANK_BYTES // max(width, BANK_BYTES))
    degrees = [
        _degree(addresses[start : start + group], width, banks)
        for start in range(0, len(addresses), group)
    ]
    return Conflicts(max(degrees, default=1), sum(degrees), len(degrees))


def conflicts(layout: Layout, pattern: Pattern, bits: int, banks: int = BANKS) -> Conflicts:
    """The conflicts of `pattern` on a shared tile of `bits`-wide elements under `layout`."""
    if any(len(lane) != len(layout.shape) for lane in pattern.lanes):
        raise ValueError(f"pattern {pattern.name!r} does not index a layout of {layout.shape}")
    widest = max(1, 128 // bits)
    width = min(pattern.width, widest)
    if width > 1:
        width = min(width, layout.vector_width(limit=width))
    total = Conflicts(1, 0, 0)
    for step in range(0, pattern.width, width):
        places = [layout.offset(*lane[:-1], lane[-1] + step) for lane in pattern.lanes]
        size = max(1, width * bits // 8)
        starts = [place * bits // 8 // size * size for place in places]
        total = _joined(total, bank_conflicts(starts, size, banks))
    return total


def worst(
    layout: Layout, patterns: Sequence[Pattern], bits: int, banks: int = BANKS
) -> tuple[Conflicts, Pattern]:
    """The first pattern with the highest degree, and its conflicts."""
    counted = [(conflicts(layout, pattern, bits, banks), pattern) for pattern in patterns]
    return max(counted, key=lambda pair: pair[0].degree)


def reads_column(rows: int, column: int = 0, first: int = 0) -> Pattern:
    """Lane `l` reads row `first + l` of one column."""
    lanes = tuple((first + row, column) for row in range(min(rows, WARP)))
    return Pattern(f"column {column}", lanes)


def reads_row(columns: int, row: int = 0, width: int = 1) -> Pattern:
    """Neighbouring lanes read neighbouring vectors of a row, and go on in the rows below."""
    per_row = max(1, columns // width)
    lanes = tuple((row + lane // per_row, lane % per_row * width) for lane in range(WARP))
    return Pattern(f"rows from {row} by {width}", lanes, width)


def ldmatrix_rows(bits: int, row: int = 0, column: int = 0, matrices: int = 4) -> Pattern:
    """The row addresses of `ldmatrix.x<matrices>` on a 16-row operand tile: lanes 0-7 name the
    rows of the first 8x8 matrix, 8-15 those of the one below, 16-31 those 16 bytes further."""
    wide = 128 // bits
    lanes = tuple(
        (row + lane % 16, column + lane // 16 * wide) for lane in range(8 * min(matrices, 4))
    )
    return Pattern(f"ldmatrix.x{matrices} at ({row}, {column})", lanes, wide)


def fragment_access(
    fragment: Fragment, origin: Index | None = None, warp: int = 0, width: int = 1
) -> tuple[Pattern, ...]:
    """How a warp moves its share of `fragment` between registers and a shared tile: one pattern
    per group of `width` slots. `origin` is added to every index."""
    base = origin or (0,) * len(fragment.shape)
    held = [fragment.elements(warp * WARP + lane) for lane in range(WARP)]
    patterns = []
    for slot in range(0, fragment.slots, width):
        at = [elements[slot] for elements in held if slot < len(elements)]
        if at:
            lanes = tuple(tuple(b + x for b, x in zip(base, e, strict=True)) for e in at)
            patterns.append(Pattern(f"slot {slot}", lanes, width))
    return tuple(patterns)


def _degree(addresses: Sequence[int], width: int, banks: int) -> int:
    words: dict[int, set[int]] = defaultdict(set)
    for address in addresses:
        for word in range(address // BANK_BYTES, (address + width - 1) // BANK_BYTES + 1):
            words[word % banks].add(word)
    return max((len(queue) for queue in words.values()), default=1)


def _joined(a: Conflicts, b: Conflicts) -> Conflicts:
    return Conflicts(max(a.degree, b.degree), a.transactions + b.transactions, a.ideal + b.ideal)
