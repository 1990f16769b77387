"""Does an index or a loop bound mix integers of different width or sign? (TL233)

    B[i] = A[idx[i] + i]       # idx is int64, i is int32: computed in 64 bits

Widths that meet in the wider one cost time, which is a remark. Signed and unsigned integers meet
in the unsigned one, where -1 is a huge number: that is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Binary, Cast, Expr, Load
from tilelang.program.stmt import For, Function, walk_statements
from tilelang_diagnostics.model import Diagnostic, Severity, Span


def check(function: Function) -> Iterator[Diagnostic]:
    """Mixed arithmetic, once per place in the text."""
    seen: set[Span | None] = set()
    for stmt in walk_statements(function.body):
        indices = [r.min for access in accesses(stmt) for r in access.ranges]
        if isinstance(stmt, For):
            indices += [e for v in stmt.loop_vars for e in (v.start, v.extent)]
        for index in indices:
            for node in _arithmetic(index):
                found = _mixed(node)
                if found is not None and node.span not in seen:
                    seen.add(node.span)
                    yield found


def _arithmetic(index: Expr) -> Iterator[Binary]:
    """Integer operations of the index itself; an index inside a load has an access of its own."""
    if isinstance(index, Load):
        return
    if isinstance(index, Binary):
        yield index
        yield from _arithmetic(index.left)
        yield from _arithmetic(index.right)
    elif isinstance(index, Cast):
        yield from _arithmetic(index.operand)


def _mixed(node: Binary) -> Diagnostic | None:
    for side, other in ((node.left, node.right), (node.right, node.left)):
        # The cast that promotion adds stands where the operation does; one the author wrote
        # stands on its own.
        if not isinstance(side, Cast) or side.span != node.span:
            continue
        narrow, wide = side.operand.dtype, side.dtype
        if not (narrow.is_integer and wide.is_integer):
            continue
        if narrow.kind == "int" and wide.kind == "uint":
            return _diagnostic(side, other, Severity.WARNING, "a negative number becomes huge")
        if narrow.bits != wide.bits:
            return _diagnostic(side, other, Severity.REMARK, f"computed in {wide.bits} bits")
    return None


def _diagnostic(side: Cast, other: Expr, severity: Severity, cost: str) -> Diagnostic:
    narrow = side.operand.dtype
    return make_diagnostic(
        "TL233",
        f"an index mixes {narrow} and {other.dtype}",
        severity=severity,
        span=side.span,
        label=cost,
        help=f"cast the other side: `T.cast(…, '{narrow}')`",
    )
