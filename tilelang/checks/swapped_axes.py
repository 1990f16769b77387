"""Are block indices used for each other's axis? (TL223)

    with T.Kernel(T.ceildiv(M, 128), T.ceildiv(N, 64)) as (bx, by):
        T.copy(A[by * 128, 0], A_shared)      # by counts N tiles, but walks M

Reported only when a tile is proved to lie wholly outside for some block, and would not with the
two indices exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program import arith
from tilelang.program.accesses import Context, accesses, variables, walk_with_context
from tilelang.program.bounds import interval
from tilelang.program.buffer import Buffer, Range
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Function, Launch
from tilelang_diagnostics.model import Diagnostic, Label, Span


def check(function: Function) -> Iterator[Diagnostic]:
    """Global regions whose origin leaves the tensor for some block."""
    for stmt, context in walk_with_context(function.body):
        if context.launch is None or context.conditions or len(context.launch.blocks) < 2:
            continue
        for access in accesses(stmt):
            if not access.buffer.is_global or access.buffer.role not in ("param", "output"):
                continue
            for dimension, r in enumerate(access.ranges):
                found = _swapped(access.buffer, dimension, r, context, context.launch)
                if found is not None:
                    used, meant = found
                    yield _diagnostic(access.buffer, dimension, r, used, meant, context)


def _swapped(
    buffer: Buffer, dimension: int, r: Range, context: Context, launch: Launch
) -> tuple[Var, Var] | None:
    """The block index used and the one that fits, when the tile surely leaves the tensor."""
    extent = buffer.shape[dimension]
    if not isinstance(extent, int):
        return None
    ranges = context.ranges()
    high = interval(r.min, ranges)[1]
    if high is None or high < extent:
        return None
    blocks = [v for v, _ in launch.blocks]
    used = [v for v in blocks if v in variables(r.min)]
    if len(used) != 1:
        return None
    for other in blocks:
        if other is used[0]:
            continue
        swapped = {**ranges, used[0]: ranges[other], other: ranges[used[0]]}
        new_high = interval(r.min, swapped)[1]
        if new_high is not None and new_high < extent:
            return used[0], other
    return None


def _diagnostic(
    buffer: Buffer, dimension: int, r: Range, used: Var, meant: Var, context: Context
) -> Diagnostic:
    ranges = context.ranges()
    count = (ranges[used][1] or 0) + 1
    high = interval(r.min, ranges)[1]
    labels = tuple(
        Label(v.span, f"`{v.name}` counts {(ranges[v][1] or 0) + 1} blocks")
        for v in (used, meant)
        if v.span is not None
    )
    return make_diagnostic(
        "TL223",
        f"`{used.name}` ranges over {count} blocks but indexes dimension {dimension} of "
        f"`{buffer.name}` (extent {buffer.shape[dimension]}): the tile at {high} lies outside",
        span=_span(r.min),
        label=f"reaches {high}",
        labels=labels,
        notes=(f"with `{meant.name}` in its place every tile begins inside",),
        help=f"exchange `{used.name}` and `{meant.name}`, or the extents of the grid",
    )


def _span(expr: Expr) -> Span | None:
    return expr.span if arith.constant_value(expr) is None else None
