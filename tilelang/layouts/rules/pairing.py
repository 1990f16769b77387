"""Which elements of two regions belong together? As copies and tile atomics pair them.

Dimensions of extent 1 do not count; the others pair up in order when both sides have as many, and
from the right otherwise, where an extent of 1 is broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang.program import arith
from tilelang.program.buffer import Region


@dataclass(frozen=True, slots=True)
class Pairing:
    """A loop over both: its extents, and which of its dimensions each side's dimension follows."""

    extents: tuple[int, ...]
    src: dict[int, int]
    dst: dict[int, int]


def pair(src: Region, dst: Region) -> Pairing | None:
    """The loop that visits two regions; None when its size is not known."""
    a, b = _free(src), _free(dst)
    if len(a) == len(b):
        axes: list[tuple[int | None, int | None]] = list(zip(a, b, strict=True))
    else:
        axes = _from_the_right(src, dst)
    extents: list[int] = []
    for s, d in axes:
        sizes = [
            arith.constant_value(region.extents[dim])
            for region, dim in ((src, s), (dst, d))
            if dim is not None
        ]
        # A side of unknown extent is guarded by its own; the tile is as large as the other.
        known = [size for size in sizes if size is not None]
        if not known or max(known) < 1:
            return None
        extents.append(max(known))
    return Pairing(
        tuple(extents) or (1,),
        {s: n for n, (s, _) in enumerate(axes) if s is not None},
        {d: n for n, (_, d) in enumerate(axes) if d is not None},
    )


def _free(region: Region) -> list[int]:
    return [d for d, e in enumerate(region.extents) if arith.constant_value(e) != 1]


def _from_the_right(src: Region, dst: Region) -> list[tuple[int | None, int | None]]:
    axes: list[tuple[int | None, int | None]] = []
    ranks = len(src.extents), len(dst.extents)
    for back in range(max(ranks), 0, -1):
        s, d = (rank - back for rank in ranks)
        wide = [
            dim if dim >= 0 and arith.constant_value(region.extents[dim]) != 1 else None
            for region, dim in ((src, s), (dst, d))
        ]
        if any(dim is not None for dim in wide):
            axes.append((wide[0], wide[1]))
    return axes
