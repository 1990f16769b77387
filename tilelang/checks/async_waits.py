"""Does anything wait for an asynchronous copy before its data are read? (TL512)

    T.async_copy(A[0], tile)
    T.copy(tile, B)             # the data may not be there yet

So it is with `T.wgmma_gemm` and its sums.

A copy in a loop that waits anywhere is taken to be part of a pipeline by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang.program.accesses import accesses, storage, walk_with_context
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Intrinsic
from tilelang.program.stmt import Evaluate, For, Function, Launch, Stmt, TileOp
from tilelang_diagnostics.model import Diagnostic, Label, Span


@dataclass(frozen=True, slots=True, eq=False)
class _Copy:
    stmt: TileOp
    tile: Buffer
    loops: tuple[For, ...]
    launch: Launch | None


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """Copies whose data are read with nothing between that waits for them."""
    if target.split(":")[0] in ("cpu", "auto"):
        return  # copies are done when the next statement begins
    walked = list(walk_with_context(function.body))
    waiting = [
        (n, context.loops) for n, (stmt, context) in enumerate(walked) if _waits(stmt)
    ]  # fmt: skip
    for n, (stmt, context) in enumerate(walked):
        copy = _started(stmt, context.loops, context.launch)
        if copy is None or any(loop in loops for _, loops in waiting for loop in copy.loops):
            continue
        next_wait = min((m for m, _ in waiting if m > n), default=len(walked))
        for later, inner in walked[n + 1 : next_wait]:
            read = _read(later, copy.tile)
            if read is not None and inner.launch is copy.launch:
                yield _diagnostic(copy, read)
                break


def _started(stmt: Stmt, loops: tuple[For, ...], launch: Launch | None) -> _Copy | None:
    if isinstance(stmt, TileOp) and stmt.name in ("async_copy", "tma_copy"):
        tile = stmt.args[1]
        assert isinstance(tile, Region)
        if tile.buffer.is_global:
            return None
        return _Copy(stmt, storage(tile.buffer), loops, launch)
    if _is_wgmma(stmt):
        assert isinstance(stmt, TileOp)
        sums = stmt.args[2]
        assert isinstance(sums, Region)
        return _Copy(stmt, storage(sums.buffer), loops, launch)
    return None


def _is_wgmma(stmt: Stmt) -> bool:
    return isinstance(stmt, TileOp) and stmt.attr("instruction") == "wgmma"


def _waits(stmt: Stmt) -> bool:
    return (
        isinstance(stmt, Evaluate)
        and isinstance(stmt.value, Intrinsic)
        and any(word in stmt.value.name for word in ("wait", "noinc"))
    )


def _read(stmt: Stmt, tile: Buffer) -> Span | None:
    if _is_wgmma(stmt):
        return None  # it adds to its sums in order
    for access in accesses(stmt):
        if storage(access.buffer) is tile and access.kind != "write":
            return access.span
    return None


def _diagnostic(copy: _Copy, read: Span) -> Diagnostic:
    name = copy.tile.name
    if _is_wgmma(copy.stmt):
        return make_diagnostic(
            "TL512",
            f"nothing waits for the products into `{name}` before they are read",
            span=copy.stmt.span,
            label="starts here",
            labels=(Label(read, f"`{name}` is read here, whether they are done or not"),),
            help="wait for them: `T.wait_wgmma(0)`; `T.gemm` waits by itself",
        )
    return make_diagnostic(
        "TL512",
        f"nothing waits for the asynchronous copy into `{name}` before it is read",
        span=copy.stmt.span,
        label="starts here",
        labels=(Label(read, f"`{name}` is read here, whether the data have come or not"),),
        help="wait for its barrier: `T.barrier_wait(barrier, parity)`"
        if copy.stmt.name == "tma_copy"
        else "write `T.ptx_wait_group(0)` and `T.sync_threads()` before the read, or `T.copy`, "
        "which waits by itself",
    )
