"""Does an access leave its buffer whatever the iteration? (TL220, TL221)

On-chip buffers have no ragged edge: any element outside is wrong. Global tensors may be read past
their end (the value is 0) and written past it (dropped), so only an access whose every element is
outside is reported; of a tensor without elements every access is, and none is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import Access, Context, accesses, walk_with_context
from tilelang.program.bounds import interval
from tilelang.program.buffer import Range
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Function
from tilelang.program.text import expr_text
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Accesses proved to be outside."""
    for stmt, context in walk_with_context(function.body):
        if context.conditions:
            continue  # a guard may be exactly what keeps the access inside
        for access in accesses(stmt):
            for dimension, r in enumerate(access.ranges):
                yield from _check_range(access, dimension, r, context)


def _check_range(
    access: Access, dimension: int, r: Range, context: Context
) -> Iterator[Diagnostic]:
    buffer = access.buffer
    extent = buffer.shape[dimension]
    if not isinstance(extent, int) or buffer.role == "pointer":
        return
    if buffer.is_empty:
        return
    ranges = context.ranges
    low, high = interval(r.min, ranges)
    size = interval(r.extent, ranges)[0]
    if size is None or size == 0:
        return
    # A negative element index counts from the end; the start of a slice does not.
    first = -extent if r.is_point else 0
    outside = (low is not None and low >= extent) or (high is not None and high + size <= first)
    if not buffer.is_global:
        # Every iteration runs, so the greatest index is reached when the index is affine.
        reached = high is not None and _is_affine(r, ranges) and high + size > extent
        outside = outside or bool(reached)
    if not outside:
        return
    point = r.is_point or size == 1
    last = (high if high is not None else low or 0) + size - 1
    labels = (
        ()
        if buffer.span is None
        else (Label(buffer.span, f"`{buffer.name}` has extent {extent} in dimension {dimension}"),)
    )
    yield make_diagnostic(
        "TL220" if point else "TL221",
        f"`{expr_text(r.min)}` reaches {last} in dimension {dimension} of `{buffer.name}`, "
        f"whose extent is {extent}",
        span=r.min.span or access.span,
        label="outside the buffer",
        labels=labels,
        help="shrink the loop or the region, or enlarge the buffer",
    )


def _is_affine(r: Range, ranges: object) -> bool:
    """Whether interval arithmetic on the index is exact: each variable occurs once."""
    from tilelang.program.expr import Binary, Load, Select, Var, walk

    seen: set[int] = set()
    for node in walk(r.min):
        if isinstance(node, (Load, Select)):
            return False
        if isinstance(node, Binary) and node.op not in ("+", "-", "*"):
            return False
        if isinstance(node, Var):
            if id(node) in seen or node.definition is not None:
                return False
            seen.add(id(node))
    return True
