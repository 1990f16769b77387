"""Which accesses can neither be proved inside the buffer nor outside it? (TL222, off by default)

    B[i] = A[idx[i]]           # idx holds whatever the caller put there

The index comes from memory or from a scalar argument, and no guard, clamp or promise bounds it.
Tiles that hang over the edge of a tensor are no such case: what lies outside reads as 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import Access, Context, accesses, variables, walk_with_context
from tilelang.program.arith import structure
from tilelang.program.bounds import interval
from tilelang.program.buffer import Range
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Load, Var, walk
from tilelang.program.stmt import Assume, Function
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Indices that only the data bounds."""
    promised: list[Expr] = []
    for stmt, context in walk_with_context(function.body):
        if isinstance(stmt, Assume):
            promised.append(stmt.condition)
        for access in accesses(stmt):
            for dimension, r in enumerate(access.ranges):
                if _is_open(access, dimension, r, context, promised):
                    yield _diagnostic(access, dimension, r)


def _is_open(
    access: Access, dimension: int, r: Range, context: Context, promised: list[Expr]
) -> bool:
    sources = _sources(r.min)
    if not sources or access.buffer.role == "pointer":
        return False
    bounded = {structure(n) for c in (*context.conditions, *promised) for n in walk(c)}
    if any(structure(s) in bounded for s in sources):
        return False
    low, high = interval(r.min, context.ranges)
    extent = access.buffer.shape[dimension]
    return not (low is not None and low >= 0 and high is not None
                and isinstance(extent, int) and high < extent)  # fmt: skip


def _sources(index: Expr) -> list[Expr]:
    """What the index depends on that has no range of its own."""
    loads: list[Expr] = [n for n in walk(index) if isinstance(n, Load)]
    return loads + [v for v in variables(index) if isinstance(v, Var) and v.kind == "param"]


def _diagnostic(access: Access, dimension: int, r: Range) -> Diagnostic:
    buffer = access.buffer
    labels = () if buffer.span is None else (
        Label(buffer.span, f"`{buffer.name}` has extent {buffer.shape[dimension]} in dimension "
                           f"{dimension}"),
    )  # fmt: skip
    source = _sources(r.min)[0]
    return make_diagnostic(
        "TL222",
        f"`{r.min}` may leave dimension {dimension} of `{buffer.name}`",
        span=r.min.span if not isinstance(r.min, Var) else access.span,
        label=f"`{source}` can have any value",
        labels=labels,
        help=f"clamp it, guard the access, or promise the range: `T.assume({source} < "
        f"{buffer.shape[dimension]})`",
    )
