"""Which elements do the two sides of a copy (or tile atomic) cover?

Each side is a whole buffer, a region, or an element `A[i, j]` that only names the origin of a
tile. The answer is one region per side with explicit extents. Extents that are matched with each
other are equal, or differ where one is not known when compiling; then the operation covers the
larger and each side is guarded by its own extent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from tilelang.language.operands import ON_CHIP, declared, extents_text, tile
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import reject
from tilelang.program.text import expr_text, region_text


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side as the user wrote it."""

    region: Region
    is_whole: bool
    is_element: bool

    @property
    def name(self) -> str:
        return self.region.buffer.name

    @property
    def extents(self) -> tuple[ex.Expr, ...]:
        return self.region.extents

    def describe(self) -> str:
        return f"`{region_text(self.region)}` {extents_text(self.extents)}"


def side(function: str, role: str, value: Any) -> Side:
    """`value` as one side of an operation."""
    return Side(tile(function, role, value), isinstance(value, Buffer), isinstance(value, ex.Load))


def match_extents(function: str, first: Side, second: Side) -> tuple[Region, Region]:
    """Both regions with extents that belong together; at most one side is an element."""
    if first.is_whole and second.is_whole:
        _check_whole(function, first, second)
        return first.region, second.region
    if first.is_element:
        return _grown(function, first, second), second.region
    if second.is_element:
        return first.region, _grown(function, second, first)
    return _paired(function, first, second)


def _check_whole(function: str, first: Side, second: Side) -> None:
    """Two whole buffers must have one shape."""
    a, b = first.region.buffer, second.region.buffer
    if len(a.shape) != len(b.shape):
        _rank_mismatch(function, first, second)
    for dimension, (x, y) in enumerate(zip(a.shape, b.shape, strict=True)):
        if arith.surely_different(x, y):
            _shape_mismatch(function, first, second, dimension, x, dimension, y)


def _grown(function: str, corner: Side, other: Side) -> Region:
    """The tile at origin `corner`, as large as the other side, right-aligned."""
    extents, rank = list(other.extents), corner.region.buffer.ndim
    while len(extents) > rank and _is_one(extents[0]):
        extents.pop(0)
    if len(extents) > rank:
        extents = [e for e in extents if not _is_one(e)]
    if len(extents) > rank:
        _rank_mismatch(function, corner, other)
    start = rank - len(extents)
    ranges = list(corner.region.ranges)
    for dimension, extent in enumerate(extents, start):
        _check_inside(corner.region, dimension, extent, other)
        ranges[dimension] = Range(ranges[dimension].min, extent)
    return replace(corner.region, ranges=tuple(ranges))


def _paired(function: str, first: Side, second: Side) -> tuple[Region, Region]:
    """Two sides with extents: their non-unit dimensions pair up in order, else from the right."""
    a, b = list(first.region.ranges), list(second.region.ranges)
    free_a = [d for d, r in enumerate(a) if not _is_one(r.extent)]
    free_b = [d for d, r in enumerate(b) if not _is_one(r.extent)]
    if len(free_a) == len(free_b):
        pairs = list(zip(free_a, free_b, strict=True))
    else:
        shared = min(len(a), len(b))
        pairs = [(len(a) - k, len(b) - k) for k in range(shared, 0, -1)]
        surplus = [r.extent for r in (*a[: len(a) - shared], *b[: len(b) - shared])]
        if any(arith.surely_different(extent, 1) for extent in surplus):
            _rank_mismatch(function, first, second)
    for x, y in pairs:
        extent_a, extent_b = a[x].extent, b[y].extent
        if _is_one(extent_a) and not _is_one(extent_b):
            _check_inside(first.region, x, extent_b, second)
            a[x] = Range(a[x].min, extent_b)
        elif _is_one(extent_b) and not _is_one(extent_a):
            _check_inside(second.region, y, extent_a, first)
            b[y] = Range(b[y].min, extent_a)
        elif arith.surely_different(extent_a, extent_b):
            a[x], b[y] = _ragged(function, first, second, x, y)
    return replace(first.region, ranges=tuple(a)), replace(second.region, ranges=tuple(b))


def _ragged(function: str, first: Side, second: Side, x: int, y: int) -> tuple[Range, Range]:
    """Different extents: fine only when the smaller is a whole dimension of a global tensor.

    `T.copy(A[i, :], S)` with `S` padded beyond `A`'s last dimension means the padded tile.
    """
    a, b = first.region.ranges[x], second.region.ranges[y]
    size_a, size_b = arith.constant_value(a.extent), arith.constant_value(b.extent)
    if size_a is not None and size_b is not None:
        if size_a < size_b and _is_whole_global(first.region, x):
            return Range(a.min, b.extent), b
        if size_b < size_a and _is_whole_global(second.region, y):
            return a, Range(b.min, a.extent)
    _shape_mismatch(function, first, second, x, a.extent, y, b.extent)


def _is_whole_global(region: Region, dimension: int) -> bool:
    r, buffer = region.ranges[dimension], region.buffer
    return (
        buffer.is_global
        and arith.constant_value(r.min) == 0
        and arith.same(r.extent, buffer.shape[dimension])
    )


def _check_inside(region: Region, dimension: int, extent: ex.Expr, other: Side) -> None:
    """A tile grown from its origin must fit an on-chip buffer; global edges may be ragged."""
    buffer = region.buffer
    size, limit = arith.constant_value(extent), arith.constant_value(buffer.shape[dimension])
    first = arith.constant_value(region.ranges[dimension].min) or 0
    if buffer.scope_name not in ON_CHIP or size is None or limit is None or first + size <= limit:
        return
    reject(
        "TL221",
        f"a tile of {extents_text(other.extents)} at `{region_text(region)}` exceeds "
        f"dimension {dimension} of `{buffer.name}` (extent {limit})",
        span=region.span,
        label=f"reaches element {first + size - 1}",
        labels=declared(region, other.region),
        help=f"slice `{other.name}` to what fits, or allocate a larger `{buffer.name}`",
    )


def _rank_mismatch(function: str, first: Side, second: Side) -> NoReturn:
    a, b = first.region.buffer, second.region.buffer
    larger, other = (first, second) if a.ndim > b.ndim else (second, first)
    points = abs(a.ndim - b.ndim)
    index = ", ".join("i" if d < points else ":" for d in range(max(a.ndim, b.ndim)))
    reject(
        "TL201",
        f"`T.{function}` between `{first.name}` of rank {a.ndim} and "
        f"`{second.name}` of rank {b.ndim}",
        span=(other if larger.is_whole and not other.is_whole else larger).region.span,
        label=f"{region_text(larger.region)} covers {extents_text(larger.extents)}",
        labels=declared(a, b),
        help=f"say which part of `{larger.name}` is meant, for example `{larger.name}[{index}]`",
    )


def _shape_mismatch(
    function: str, first: Side, second: Side, x: int, extent_a: Any, y: int, extent_b: Any
) -> NoReturn:
    reject(
        "TL202",
        f"`T.{function}` between {first.describe()} and {second.describe()}: "
        f"{expr_text(arith.simplify(extent_a))} elements in dimension {x} of `{first.name}`, "
        f"{expr_text(arith.simplify(extent_b))} in dimension {y} of `{second.name}`",
        span=first.region.span,
        labels=declared(first.region, second.region),
        help=_shape_help(first, second),
    )


def _shape_help(first: Side, second: Side) -> str:
    a, b = first.region.buffer, second.region.buffer
    swapped = first.extents[-2:][::-1]
    if len(first.extents) == len(second.extents) >= 2 and all(
        arith.same(p, q) for p, q in zip(swapped, second.extents[-2:], strict=True)
    ):
        return "the last two dimensions are swapped: use `T.transpose`"
    if first.is_whole and second.is_whole and a.is_global != b.is_global:
        outer, inner = (a, b) if a.is_global else (b, a)
        origin = ", ".join(f"{'ijklmn'[d % 6]} * {expr_text(n)}" for d, n in enumerate(inner.shape))
        return f"say which tile of `{outer.name}` is meant: `{outer.name}[{origin}]`"
    return f"slice the larger side, or give `{b.name}` the shape {extents_text(first.region.shape)}"


def _is_one(extent: Any) -> bool:
    return arith.constant_value(extent) == 1
