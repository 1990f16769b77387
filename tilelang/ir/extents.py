"""How large is a tile that was named by its origin only?

In `T.copy(A[i, j], S)` the element `A[i, j]` has no extent of its own: it is the corner of a tile
as large as the other side. TIRX regions cannot say "corner", so this is settled on the way in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilelang.program import arith
from tilelang.program import buffer as bf
from tilelang.program import expr as ex

# The operand pairs of each operation whose extents must agree.
_PAIRED = {"copy": (0, 1), "async_copy": (0, 1), "tma_copy": (0, 1), "atomic": (0, 1)}


def with_matched_extents(
    name: str, args: Sequence[ex.Expr | bf.Region]
) -> tuple[ex.Expr | bf.Region, ...]:
    """`args` with each corner of tile operation `name` grown to the extents of its partner."""
    pair = _PAIRED.get(name)
    if pair is None or len(args) < 2:
        return tuple(args)
    first, second = args[pair[0]], args[pair[1]]
    if not isinstance(first, bf.Region) or not isinstance(second, bf.Region):
        return tuple(args)
    out = list(args)
    if is_corner(first) and not is_corner(second):
        out[pair[0]] = grow(first, second)
    elif is_corner(second) and not is_corner(first):
        out[pair[1]] = grow(second, first)
    return tuple(out)


def is_corner(region: bf.Region) -> bool:
    """Whether every dimension is a plain index, so that the region is an origin only."""
    return bool(region.ranges) and all(r.is_point for r in region.ranges)


def grow(corner: bf.Region, other: bf.Region) -> bf.Region:
    """`corner` with the extents of `other`, right-aligned; surplus leading extents must be 1."""
    extents = list(other.extents)
    while len(extents) > len(corner.ranges) and arith.constant_value(extents[0]) == 1:
        extents.pop(0)
    if len(extents) > len(corner.ranges):
        # More real dimensions than the corner has: only its non-unit ones can fit.
        extents = [e for e in extents if arith.constant_value(e) != 1]
    if len(extents) > len(corner.ranges):
        raise ValueError(f"{other.buffer.name} has more dimensions than {corner.buffer.name}")
    start = len(corner.ranges) - len(extents)
    ranges = list(corner.ranges)
    for position, extent in enumerate(extents, start):
        ranges[position] = bf.Range(ranges[position].min, extent)
    return replace(corner, ranges=tuple(ranges))
