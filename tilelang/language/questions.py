"""Is anything in a tile set? Is everything? Each thread that asks reads the whole tile."""

from __future__ import annotations

import itertools
from typing import Any

from tilelang.language.catalog import language_function
from tilelang.language.operands import LOCAL, SHARED, TileLike, intrinsic, require_scope, tile
from tilelang.program import arith, operators
from tilelang.program.buffer import Region
from tilelang.program.context import current_span
from tilelang.program.expr import BOOL, Load

MAX_WRITTEN_OUT = 256


@language_function("scalar")
def any_of(buffer: TileLike) -> Any:
    """Whether any element of a buffer or region is not zero.

    Args:
        buffer: tile in global, shared or local memory; gives bool.

    >>> if T.any_of(block_mask[by, bx, :]):
    """
    return _ask("any_of", "or", buffer)


@language_function("scalar")
def all_of(buffer: TileLike) -> Any:
    """Whether all elements of a buffer or region are not zero.

    Args:
        buffer: tile in global, shared or local memory; gives bool.

    >>> if T.all_of(block_mask[by, bx, :]):
    """
    return _ask("all_of", "and", buffer)


def _ask(function: str, op: str, buffer: Any) -> Any:
    region = tile(function, "buffer", buffer)
    help = "a thread holds only a part of a fragment: reduce it first, with `T.reduce_bitor`"
    require_scope(function, "buffer", region, ("global", *SHARED, *LOCAL), help)
    extents = [arith.constant_value(e) for e in region.extents]
    known = [e for e in extents if e is not None]
    count = 1
    for extent in known:
        count *= extent
    if len(known) < len(extents) or not 0 < count <= MAX_WRITTEN_OUT:
        return intrinsic(function, (region,), BOOL)
    tests = [
        operators.as_condition(_element(region, offsets))
        for offsets in itertools.product(*(range(e) for e in known))
    ]
    while len(tests) > 1:  # a balanced tree keeps the expression shallow
        pairs = [tests[n : n + 2] for n in range(0, len(tests), 2)]
        tests = [operators.binary(op, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return tests[0]


def _element(region: Region, offsets: tuple[int, ...]) -> Load:
    places = tuple(
        operators.as_expr(r.min + offset) for r, offset in zip(region.ranges, offsets, strict=True)
    )
    return Load(region.buffer, places, region.dtype, current_span())


FUNCTIONS = (any_of, all_of)
