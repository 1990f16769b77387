"""Does anything in a `while` change what it waits for? (TL139)

    i = T.alloc_var("int32", init=0)
    while i < 4:
        B[i] = A[i]              # and `i` stays 0

Only of variables and registers of the thread: another thread may write what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Function, Jump, While, walk_statements
from tilelang_diagnostics.model import Diagnostic, Severity

_OWN = frozenset({"local", "local.var", "local.fragment"})


def check(function: Function) -> Iterator[Diagnostic]:
    """Loops whose condition says the same each time, and that nothing leaves."""
    for stmt in walk_statements(function.body):
        if isinstance(stmt, While):
            yield from _check_loop(stmt)


def _check_loop(loop: While) -> Iterator[Diagnostic]:
    asked = {a.buffer: None for a in accesses(loop) if a.kind == "read"}
    inside = list(walk_statements(loop.body))
    changed = {a.buffer for s in inside for a in accesses(s) if a.kind != "read" or not a.certain}
    leaves = any(isinstance(s, Jump) and s.kind != "continue" for s in inside)
    if leaves or not asked or any(b in changed or b.scope_name not in _OWN for b in asked):
        return
    names = " and ".join(f"`{buffer.name}`" for buffer in asked)
    yield make_diagnostic(
        "TL139",
        f"nothing in this loop changes {names}: once it is entered, it never ends",
        span=loop.condition.span or loop.span,
        severity=Severity.WARNING,
        help=f"change {names} in the loop, or leave it with `break`",
    )
