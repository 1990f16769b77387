"""Can a `T.vectorized` loop become vector instructions? (TL605)

    for v in T.vectorized(4):
        B[v * 2] = A[v * 2]        # every second element: four scalar stores

Lanes are neighbours in memory when the last index grows by 1 with the loop variable. Only indices
that surely do not are reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import Access, accesses, variables
from tilelang.program.arith import normal_form, structure
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import For, Function, walk_statements
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Accesses in vector loops whose lanes lie apart."""
    for stmt in walk_statements(function.body):
        if isinstance(stmt, For) and stmt.kind == "vectorized":
            yield from _check_loop(stmt)


def _check_loop(loop: For) -> Iterator[Diagnostic]:
    var = loop.loop_vars[0].var
    for stmt in walk_statements(loop.body):
        for access in accesses(stmt):
            apart = _lane_distance(access, var)
            if apart is not None:
                yield _diagnostic(loop, access, var, apart)
                return


def _lane_distance(access: Access, var: Var) -> str | None:
    """How far apart two neighbouring lanes lie, when that is not one element."""
    *outer, last = access.ranges
    for r in outer:
        if (step := coefficient(r.min, var)) is not None and step != 0:
            return counted(abs(step), "row")
    step = coefficient(last.min, var)
    return None if step is None or step in (0, 1) else f"{abs(step)} elements"


def coefficient(index: Expr, var: Var) -> int | None:
    """By how much `index` grows with `var`; None when it is not affine in it."""
    key = structure(var)
    step = 0
    for factors, number in normal_form(index).items():
        if factors == (key,):
            step = number
        elif key in factors:
            return None
    rest = {k: n for k, n in normal_form(index).items() if k != (key,)}
    if var in variables(index) and any(_mentions(f, key) for k in rest for f in k):
        return None
    return step


def _mentions(form: object, key: object) -> bool:
    return form == key or (isinstance(form, tuple) and any(_mentions(part, key) for part in form))


def _diagnostic(loop: For, access: Access, var: Var, apart: str) -> Diagnostic:
    labels = () if loop.span is None else (Label(loop.span, "asks for one vector instruction"),)
    return make_diagnostic(
        "TL605",
        f"neighbouring lanes of `{var.name}` are {apart} apart in `{access.buffer.name}`",
        span=access.span,
        label="runs element by element",
        labels=labels,
        help=f"index `{access.buffer.name}` so that its last index grows by 1 with `{var.name}`",
    )
