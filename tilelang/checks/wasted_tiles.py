"""Do the tiles of a launch cover much more than the tensor has? (TL608, for GPUs)

    with T.Kernel(T.ceildiv(132, 128)) as bx:
        … A[bx * 128 + i] …         # two tiles of 128 for 132 elements

What lies beyond the edge is computed and thrown away. A single tile is no choice of tiles, loops
that skip whole tiles waste nothing, and tiles that overlap are larger than their step on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilelang.program.accesses import Access, Context, accesses, variables, walk_with_context
from tilelang.program.arith import constant_value
from tilelang.program.bounds import interval
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Function, Launch, TileOp, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label

WORTH_SAYING: Final = 1 / 3


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """The worst access of each launch."""
    if target.split(":")[0] in ("cpu", "auto"):
        return
    worst: dict[Launch, tuple[float, Diagnostic]] = {}
    for stmt, context in walk_with_context(function.body):
        if context.launch is None:
            continue
        for access in accesses(stmt):
            if not access.buffer.is_global or access.buffer.role == "pointer":
                continue
            for dimension in range(len(access.ranges)):
                found = _wasted(access, dimension, context)
                if found is not None and found[0] > worst.get(context.launch, (0.0,))[0]:
                    worst[context.launch] = found
    yield from (diagnostic for _, diagnostic in worst.values())


def _wasted(access: Access, dimension: int, context: Context) -> tuple[float, Diagnostic] | None:
    r = access.ranges[dimension]
    extent = constant_value(access.buffer.shape[dimension])
    size = constant_value(r.extent)
    blocks = _blocks(r.min, context)
    if extent is None or size is None or len(blocks) != 1 or _skips(r.min, context):
        return None
    ((block, count),) = blocks.items()
    low, high = interval(r.min, context.ranges)
    if low != 0 or high is None or count < 2 or _overlap(r.min, size, block, context):
        return None
    covered = high + size
    share = 1 - extent / covered
    if share < WORTH_SAYING:
        return None
    name, each = access.buffer.name, -(-extent // count)
    launch = context.launch
    labels = () if launch is None or launch.span is None else (
        Label(launch.span, f"{count} blocks along `{block.name}`"),
    )  # fmt: skip
    return share, make_diagnostic(
        "TL608",
        f"the tiles along `{block.name}` cover {covered} elements of dimension {dimension} of "
        f"`{name}`, which has {extent}: {share:.0%} of the work is thrown away",
        span=access.span,
        label=f"tiles of {covered // count}",
        labels=labels,
        help=f"try smaller tiles, from {each} on, of a size that T.gemm takes"
        if launch is not None and _multiplies(launch)
        else f"tiles of {each} cover it with as many blocks",
    )


def _multiplies(launch: Launch) -> bool:
    """Whether tiles have to fit matrix instructions, which not every size does."""
    return any(isinstance(s, TileOp) and "gemm" in s.name for s in walk_statements(launch.body))


def _blocks(index: Expr, context: Context) -> dict[Var, int]:
    """The grid variables that an index follows, with their known extents."""
    assert context.launch is not None
    used = variables(index)
    return {
        var: count
        for var, extent in context.launch.blocks
        if var in used and (count := constant_value(extent)) is not None
    }


def _overlap(index: Expr, size: int, block: Var, context: Context) -> bool:
    """Whether a block reaches into what the next one covers."""
    ranges = context.ranges
    first, second = (interval(index, {**ranges, block: (at, at)}) for at in (0, 1))
    return first[1] is not None and second[0] is not None and first[1] + size > second[0]


def _skips(index: Expr, context: Context) -> bool:
    """Whether a condition leaves out whole tiles: one that does not look at single elements."""
    single = {v.var for v in context.parallel_vars}
    if context.launch is not None:
        single |= {var for var, _ in context.launch.threads}
    return any(
        not variables(c).isdisjoint(variables(index)) and variables(c).isdisjoint(single)
        for c in context.conditions
    )
