"""Is every run-time dimension known from some input when the kernel is called? (TL710)"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import variables
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic


def check(function: Function) -> Iterator[Diagnostic]:
    """`T.empty` extents must follow from the shapes, strides and scalars passed in."""
    known: set[Var] = set()
    for param in function.params:
        if isinstance(param, Var):
            known.add(param)
        else:
            known |= {d for d in (*param.shape, *(param.strides or ())) if isinstance(d, Var)}
    for output in function.outputs:
        for dim in output.shape:
            for var in _dims(dim):
                if var not in known:
                    yield _unbound(function, output, var)


def _dims(dim: object) -> list[Var]:
    if not isinstance(dim, Expr):
        return []
    return sorted((v for v in variables(dim) if v.kind == "dim"), key=lambda v: v.name)


def _unbound(function: Function, output: Buffer, var: Var) -> Diagnostic:
    return make_diagnostic(
        "TL710",
        f"dim `{var.name}` of output `{output.name}` is the shape of no input",
        span=output.span or function.span,
        label=f"`{var.name}` has no value when `{function.name}` is called",
        help=f"give a tensor parameter the extent `{var.name}`, or pass it as a scalar",
    )
