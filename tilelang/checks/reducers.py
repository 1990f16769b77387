"""Is a reducer read, or written other than by `T.reducer_update`? (TL187)

    total = T.alloc_reducer((1,), "float32", op="sum")
    total[0] += A[i]               # one thread's share; the others' contributions are lost

Tile operations on reducers are refused where they are traced; these are loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Evaluate, Function, Store, TileOp, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Elements of reducers used as if they were memory."""
    for stmt in walk_statements(function.body):
        if isinstance(stmt, (TileOp, Evaluate)):
            continue
        for access in accesses(stmt):
            if access.buffer.is_reducer:
                stored = isinstance(stmt, Store) and stmt.buffer is access.buffer
                yield _diagnostic(access.buffer, stmt.span if stored else access.span, stored)
                break


def _diagnostic(buffer: Buffer, span: object, stored: bool) -> Diagnostic:
    labels = () if buffer.span is None else (Label(buffer.span, f"`{buffer.name}` is a reducer"),)
    return make_diagnostic(
        "TL187",
        f"an element of the reducer `{buffer.name}` is {'assigned' if stored else 'read'}",
        span=span,  # type: ignore[arg-type]
        label="sees the share of one thread only",
        labels=labels,
        help=f"contribute with `T.reducer_update({buffer.name}[…], value)`, and read what "
        f"`T.finalize_reducer({buffer.name}, dst)` writes",
    )
