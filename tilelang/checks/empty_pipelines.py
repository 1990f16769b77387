"""Does a pipelined loop have anything to load ahead? (TL507, for GPUs)

    for k in T.Pipelined(8, num_stages=3):      # reads shared memory only

Stages hide the time of copies out of global memory; without one there is nothing to hide.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import For, Function, walk_statements
from tilelang_diagnostics.model import Diagnostic


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """Loops of two stages or more that read no tensor."""
    if target.split(":")[0] in ("cpu", "auto"):
        return
    for stmt in walk_statements(function.body):
        if isinstance(stmt, For) and stmt.kind == "pipelined":
            yield from _check_loop(stmt)


def _check_loop(loop: For) -> Iterator[Diagnostic]:
    stages = loop.attr("num_stages", 0)
    if not isinstance(stages, int) or stages < 2:
        return
    reads_global = any(
        access.buffer.is_global and access.kind != "write"
        for stmt in walk_statements(loop.body)
        for access in accesses(stmt)
    )
    if not reads_global:
        yield make_diagnostic(
            "TL507",
            "nothing in this pipelined loop is read from global memory",
            span=loop.span,
            label=f"{stages} stages with nothing to prefetch",
            help="use `T.serial`",
        )
