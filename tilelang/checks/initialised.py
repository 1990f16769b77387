"""Is an on-chip buffer read before anything is written to it? (TL185, TL186)

Order is program order of the first iteration; a write in a branch or in part of the buffer counts,
so that only buffers nothing wrote at all are reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import Access, accesses, storage, walk_with_context
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Intrinsic, walk
from tilelang.program.stmt import Allocate, Evaluate, Function, Scoped, Stmt, TileOp
from tilelang_diagnostics.model import Diagnostic, Label

_CHECKED = ("shared", "shared.dyn", "local.fragment", "local", "local.var")


def check(function: Function) -> Iterator[Diagnostic]:
    """First reads of unwritten buffers, and buffers nobody reads."""
    if _has_opaque_code(function):
        return
    written: set[int] = set()
    touched: set[int] = set()
    reported: set[int] = set()
    allocated: list[Allocate] = []
    for stmt, _ in walk_with_context(function.body):
        if isinstance(stmt, Allocate):
            allocated.append(stmt)
        for access in accesses(stmt):
            buffer = storage(access.buffer)
            if access.kind != "write":
                touched.add(id(buffer))
                if id(buffer) not in written | reported and buffer.scope_name in _CHECKED:
                    reported.add(id(buffer))
                    yield _unwritten(buffer, access, stmt)
            if access.kind != "read":
                written.add(id(buffer))
                if isinstance(stmt, Evaluate):
                    touched.add(id(buffer))
    for stmt in allocated:
        if stmt.buffer.source is not None:
            continue  # a view takes no memory of its own
        if id(stmt.buffer) not in touched and stmt.buffer.scope_name in _CHECKED:
            yield make_diagnostic(
                "TL186",
                f"`{stmt.buffer.name}` is never read",
                span=stmt.span,
                label="takes memory for nothing",
                help=f"remove `{stmt.buffer.name}`",
            )


def _unwritten(buffer: Buffer, access: Access, stmt: Stmt) -> Diagnostic:
    is_gemm = isinstance(stmt, TileOp) and stmt.name == "gemm" and access.kind == "update"
    advice = (
        f"`T.clear({buffer.name})` before the loop, or `clear_accum=True` on the first `T.gemm`"
        if is_gemm
        else f"give it a first value: `{buffer.name} = T.alloc_var({str(buffer.dtype)!r}, init=0)`"
        if buffer.scope_name == "local.var"
        else f"fill it first, for example `T.clear({buffer.name})`"
    )
    labels = (
        ()
        if buffer.span is None
        else (Label(buffer.span, f"`{buffer.name}` is allocated here with undefined contents"),)
    )
    return make_diagnostic(
        "TL185",
        f"`{buffer.name}` is read before anything is written to it",
        span=access.span,
        label="accumulates into undefined values" if is_gemm else "undefined values",
        labels=labels,
        help=advice,
    )


def _has_opaque_code(function: Function) -> bool:
    """External code may write through pointers; warp roles run concurrently, not in order."""
    for stmt, _ in walk_with_context(function.body):
        if isinstance(stmt, Scoped) and stmt.kind == "ws":
            return True
        if isinstance(stmt, Evaluate):
            for node in walk(stmt.value):
                if isinstance(node, Intrinsic) and node.name in _OPAQUE:
                    return True
    return False


_OPAQUE = frozenset({"call_extern", "call_intrin", "access_ptr", "address_of", "tvm_access_ptr"})
