"""Are block indices used for each other's axis? (TL223)

    with T.Kernel(T.ceildiv(M, 128), T.ceildiv(N, 64)) as (bx, by):
        T.copy(A[by * 128, 0], A_shared)      # by counts N tiles, but walks M

A tile that begins outside is no proof: a split of the K axis may well come out empty. Reported only
when, besides, the counts of both indices fit the axes exactly with the two exchanged, and neither
index fits any axis as it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang.program import arith
from tilelang.program.accesses import Context, accesses, variables, walk_with_context
from tilelang.program.bounds import Interval, interval
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic, Edit, Fix, Label, Span


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """Block index `var` walks dimension `dimension` of `buffer` in steps of `step` elements."""

    var: Var
    buffer: Buffer
    dimension: int
    extent: int
    step: int
    origin: Expr
    context: Context

    @property
    def tiles(self) -> int:
        return -(-self.extent // self.step)


def check(function: Function) -> Iterator[Diagnostic]:
    """Global regions whose origin leaves the tensor for some block, the axes being exchanged."""
    uses = list(_uses(function))
    counts = {use.var: _count(use.var, use.context) for use in uses}
    fitting = {use.var for use in uses if use.tiles == counts[use.var]}
    for use in uses:
        if use.var in fitting or use.tiles >= counts[use.var]:
            continue
        for other, count in counts.items():
            if other is use.var or other in fitting or use.tiles != count:
                continue
            if any(u.var is other and u.tiles == counts[use.var] for u in uses):
                yield _diagnostic(use, other)
                break


def _uses(function: Function) -> Iterator[_Use]:
    """Every dimension of a global tensor that exactly one block index walks by a constant step."""
    for stmt, context in walk_with_context(function.body):
        launch = context.launch
        if launch is None or context.conditions or len(launch.blocks) < 2:
            continue
        for access in accesses(stmt):
            if not access.buffer.is_global or access.buffer.role not in ("param", "output"):
                continue
            for dimension, r in enumerate(access.ranges):
                extent = access.buffer.shape[dimension]
                used = [v for v, _ in launch.blocks if v in variables(r.min)]
                if len(used) != 1 or not isinstance(extent, int) or not _count(used[0], context):
                    continue
                step = _step(r.min, used[0], context)
                if step is not None and step > 0:
                    yield _Use(used[0], access.buffer, dimension, extent, step, r.min, context)


def _count(var: Var, context: Context) -> int:
    """How many values a block index takes; 0 when only known at run time."""
    high = context.ranges[var][1]
    return 0 if high is None else high + 1


def _step(origin: Expr, var: Var, context: Context) -> int | None:
    """How far `origin` moves when `var` goes from 0 to 1."""
    ranges = _origins(context)
    first = interval(origin, {**ranges, var: (0, 0)})[0]
    second = interval(origin, {**ranges, var: (1, 1)})[0]
    return None if first is None or second is None else second - first


def _origins(context: Context) -> dict[Var, Interval]:
    """Ranges in which loops stay at their first iteration: where tiles begin, not how far they go.

    A tile that hangs over the edge is legal; one that begins outside holds nothing.
    """
    blocks = {v for v, _ in context.launch.blocks} if context.launch else set()
    return {
        var: bounds if var in blocks else (bounds[0], bounds[0])
        for var, bounds in context.ranges.items()
    }


def _diagnostic(use: _Use, meant: Var) -> Diagnostic:
    high = interval(use.origin, _origins(use.context))[1]
    labels = tuple(
        Label(v.span, f"`{v.name}` counts {_count(v, use.context)} blocks")
        for v in (use.var, meant)
        if v.span is not None
    )
    return make_diagnostic(
        "TL223",
        f"`{use.var.name}` ranges over {_count(use.var, use.context)} blocks but indexes dimension "
        f"{use.dimension} of `{use.buffer.name}` (extent {use.extent}): the tile at {high} lies "
        "outside",
        span=_span(use.origin),
        label=f"reaches {high}",
        labels=labels,
        notes=(f"with `{meant.name}` in its place every tile begins inside",),
        help=f"exchange `{use.var.name}` and `{meant.name}`, or the extents of the grid",
        fixes=_exchanged(use.var, meant),
    )


def _exchanged(one: Var, other: Var) -> tuple[Fix, ...]:
    """The names of two axes of a launch the other way round, where those stand there."""
    edits = []
    for var, name in ((one, other.name), (other, one.name)):
        span = var.span
        if span is None or span.end_column - span.column != len(var.name):
            return ()
        edits.append(Edit(span, name))
    return (Fix(f"exchange `{one.name}` and `{other.name}`", tuple(edits)),)


def _span(expr: Expr) -> Span | None:
    return expr.span if arith.constant_value(expr) is None else None
