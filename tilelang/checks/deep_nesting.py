"""Does a kernel nest deeper than passes can follow? (TL148)

    if A[0] == 0: ...
    elif A[0] == 1: ...          # and so on, hundreds of times

It is asked first, and nothing else is asked of a kernel that does.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.context import make_diagnostic
from tilelang.program.depth import MAX_NESTED, MAX_OPERATIONS, is_deeper
from tilelang.program.stmt import Function, If, Stmt, bodies, expressions
from tilelang_diagnostics.model import Diagnostic


def check(function: Function) -> Iterator[Diagnostic]:
    """The first statement whose body is too deep, or that holds an expression that is."""
    waiting: list[tuple[Stmt, int]] = [(s, 1) for s in reversed(function.body)]
    while waiting:
        stmt, depth = waiting.pop()
        inner = [s for body in bodies(stmt) for s in body]
        if inner and depth == MAX_NESTED:
            yield _nested(stmt)
            return
        if is_deeper(tuple(expressions(stmt)), MAX_OPERATIONS):
            yield make_diagnostic(
                "TL148",
                f"an expression nests more than {MAX_OPERATIONS} operations",
                span=stmt.span,
                help="add up in a `T.serial` loop, or give parts of it names",
            )
            return
        waiting += [(s, depth + 1) for s in reversed(inner)]


def _nested(stmt: Stmt) -> Diagnostic:
    message = f"more than {MAX_NESTED} statements are nested here"
    if isinstance(stmt, If):
        return make_diagnostic(
            "TL148",
            f"{message}, each `elif` in the one before",
            span=stmt.condition.span or stmt.span,
            help="look the value up in a tensor, or make several chains of this one",
        )
    return make_diagnostic(
        "TL148", message, span=stmt.span, help="nest fewer loops, branches and macros"
    )
