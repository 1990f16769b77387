"""Which reductions and scans have results that their output may not hold? (TL247)

    T.reduce_max(scores, best, dim=1)      # scores: int32, best: int8

The result is converted element by element, as by a copy, and nothing in the line says so. A float
that only becomes less exact is no such case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilelang.dtypes import LARGEST, DType
from tilelang.program.buffer import Region
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Function, TileOp, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label

_OPS: Final = {"reduce": "T.reduce_{}", "scan": "T.cum{}"}
_ENOUGH: Final = 1e30  # what float32 and bfloat16 hold, kernels do not come near


def check(function: Function) -> Iterator[Diagnostic]:
    """Operations whose output has a smaller range than what they go through."""
    for stmt in walk_statements(function.body):
        if isinstance(stmt, TileOp) and stmt.name in _OPS:
            source, target = stmt.args[:2]
            if isinstance(source, Region) and isinstance(target, Region):
                why = _what_is_lost(source.dtype, target.dtype)
                if why is not None:
                    yield _narrow(stmt, source, target, why)


def _what_is_lost(source: DType, target: DType) -> str | None:
    """What becomes of a result that does not fit, None where all do."""
    if not (_is_number(source) and _is_number(target)):
        return None
    if target.is_integer:
        low, high = target.integer_range()
        if source.is_float:
            return f"it is rounded towards zero, and {target} holds {low} … {high}"
        first, last = source.integer_range()
        fits = low <= first and last <= high
        return None if fits else f"{target} holds {low} … {high}, and what is outside wraps around"
    largest = LARGEST[target.base]
    most = LARGEST[source.base] if source.is_float else source.integer_range()[1]
    if largest >= min(most, _ENOUGH):
        return None
    return f"{target} holds at most {largest:g}, and {source} more"


def _is_number(dtype: DType) -> bool:
    return dtype.lanes == 1 and (dtype.is_float or (dtype.is_integer and dtype.kind != "bool"))


def _narrow(op: TileOp, source: Region, target: Region, why: str) -> Diagnostic:
    name, into = source.buffer.name, target.buffer.name
    return make_diagnostic(
        "TL247",
        f"`{_OPS[op.name].format(op.attr('kind'))}` of `{name}` ({source.dtype}) may not fit "
        f"`{into}` ({target.dtype})",
        span=op.span,
        label=why,
        labels=tuple(
            Label(r.buffer.span, f"`{r.buffer.name}` is {r.dtype}")
            for r in (source, target)
            if r.buffer.span is not None
        ),
        help=f"give `{into}` the dtype {source.dtype}, and convert where the result is used: "
        f"`T.cast({into}[…], '{target.dtype}')`, or `T.copy`",
    )
