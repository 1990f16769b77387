"""Is an on-chip buffer read before anything is written to it? (TL185, TL186)

Order is program order of the first iteration; a write in a branch or in part of the buffer counts,
so that only buffers nothing wrote at all are reported. A read under a condition may be meant for
later iterations of a loop that writes further down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilelang.program.accesses import Access, Context, accesses, storage, walk_with_context
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Intrinsic, walk
from tilelang.program.stmt import (
    Allocate,
    Evaluate,
    For,
    Function,
    Scoped,
    Stmt,
    TileOp,
    walk_statements,
)
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
    loops = _Loops()
    for stmt, context in walk_with_context(function.body):
        loops.enter(stmt, context)
        if isinstance(stmt, Allocate):
            allocated.append(stmt)
        for access in accesses(stmt):
            buffer = storage(access.buffer)
            if access.kind != "write":
                touched.add(id(buffer))
                if id(buffer) in written | reported or buffer.scope_name not in _CHECKED:
                    continue
                if not loops.may_have_written(buffer, context):
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


@dataclass(slots=True)
class _Loops:
    """What each loop writes, and how many conditions stand around it."""

    known: dict[int, tuple[frozenset[int], int]] = field(default_factory=dict)

    def enter(self, stmt: Stmt, context: Context) -> None:
        if isinstance(stmt, For):
            writes = frozenset(
                id(storage(access.buffer))
                for inner in walk_statements(stmt.body)
                for access in accesses(inner)
                if access.kind != "read"
            )
            self.known[id(stmt)] = writes, len(context.conditions)

    def may_have_written(self, buffer: Buffer, context: Context) -> bool:
        """Whether an earlier iteration may have, where conditions leave the first one out."""
        return any(
            id(buffer) in writes and len(context.conditions) > conditions
            for writes, conditions in (self.known[id(loop)] for loop in context.loops)
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
