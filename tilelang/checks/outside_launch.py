"""Does device code stand outside the launch, or the launch in a loop or branch? (TL162, TL161)

    tile = T.alloc_shared((128,), "float32")     # no block of threads yet that could have it
    with T.Kernel(1, threads=128):
        T.copy(A, tile)

Around launches a kernel binds names, promises, and allocates global memory; no thread runs there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var, walk
from tilelang.program.stmt import (
    Allocate,
    Block,
    Evaluate,
    For,
    Function,
    If,
    Launch,
    Scoped,
    Stmt,
    Store,
    TileOp,
    While,
    walk_statements,
)
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Device statements beside the launches of a kernel that has some."""
    launches = [s for s in walk_statements(function.body) if isinstance(s, Launch)]
    if launches:
        yield from _check_block(function.body, launches[0])


def _check_block(block: Block, launch: Launch) -> Iterator[Diagnostic]:
    for stmt in block:
        if isinstance(stmt, Scoped):
            yield from _check_block(stmt.body, launch)
        elif isinstance(stmt, (For, While)):
            inside = [s for s in walk_statements(stmt.body) if isinstance(s, Launch)]
            yield _repeated_launch(stmt, inside[0]) if inside else _outside(stmt, launch)
        elif isinstance(stmt, If):
            inside = [s for b in (stmt.then, stmt.orelse) for s in walk_statements(b)
                      if isinstance(s, Launch)]  # fmt: skip
            if inside and not _is_open(stmt.condition):
                yield _conditional_launch(stmt, inside[0])
            for branch in (stmt.then, stmt.orelse):
                yield from _check_block(branch, launch)
        elif isinstance(stmt, (Store, TileOp, Evaluate)) or (
            isinstance(stmt, Allocate) and not stmt.buffer.is_global
        ):
            yield _outside(stmt, launch)


def _outside(stmt: Stmt, launch: Launch) -> Diagnostic:
    what = (
        f"`{stmt.buffer.name}` is allocated"
        if isinstance(stmt, Allocate)
        else ("a device statement stands")
    )
    labels = () if launch.span is None else (Label(launch.span, "threads exist in here"),)
    return make_diagnostic(
        "TL162",
        f"{what} outside `with T.Kernel(…)`",
        span=stmt.span,
        label="no block of threads runs this",
        labels=labels,
        help="move it into the launch",
    )


def _is_open(condition: Expr) -> bool:
    """Whether it is read without the values of Python parameters, which decide it in a call."""
    return any(isinstance(n, Var) and n.kind in ("symbol", "const") for n in walk(condition))


def _conditional_launch(branch: If, launch: Launch) -> Diagnostic:
    return make_diagnostic(
        "TL161",
        "`T.Kernel` inside a branch that is decided at run time",
        span=launch.span,
        label="would launch in some calls only",
        labels=()
        if branch.condition.span is None
        else (Label(branch.condition.span, "known at the call"),),
        help="put the branch inside the launch, launch an empty grid "
        "(`T.Kernel(T.if_then_else(condition, blocks, 0))`), or decide in Python which kernel to "
        "call",
    )


def _repeated_launch(loop: Stmt, launch: Launch) -> Diagnostic:
    return make_diagnostic(
        "TL161",
        "`T.Kernel` inside a loop",
        span=launch.span,
        label="would launch once per iteration",
        labels=() if loop.span is None else (Label(loop.span, "this loop"),),
        help="put the loop inside the launch, or, for a launch per step, loop over a list, which "
        "is unrolled: `for step in list(range(n)):`",
    )
