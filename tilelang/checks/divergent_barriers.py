"""Does a barrier wait for threads that never come? (TL510)

    if tx < 64:
        T.sync_threads()        # threads 64 to 127 are elsewhere

Named barriers that say how many threads meet are the author's own arrangement. For a CPU the
compiler finds the same while it cuts the block into pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelang.checks.by_thread import Place, depends_on_threads, walk_by_thread
from tilelang.layout.lazy import np
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Intrinsic
from tilelang.program.stmt import Evaluate, Function, Stmt
from tilelang_diagnostics.model import Diagnostic, Label, Span

BARRIERS = {"sync_threads": "T.sync_threads", "sync_grid": "T.sync_grid"}


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """Barriers of the block or the grid where only some threads arrive."""
    if target.split(":")[0] in ("cpu", "auto"):
        return
    for stmt, place in walk_by_thread(function):
        name = _barrier(stmt)
        if name is not None and not place.grouped:
            found = _missing(place)
            if found is not None:
                yield _diagnostic(stmt.span, name, *found)


def _barrier(stmt: Stmt) -> str | None:
    match stmt:
        case Evaluate(value=Intrinsic(name=name, args=args)) if name in BARRIERS and not args:
            return BARRIERS[name]
        case _:
            return None


def _missing(place: Place) -> tuple[Any, int, Expr] | None:
    """The threads that do not come, in a case that happens, how many do, and what decides."""
    decides = [c for c, _ in place.conditions if depends_on_threads(c, place)]
    decides += [
        v.extent for loop in place.loops for v in loop.loop_vars
        if depends_on_threads(v.extent, place)
    ]  # fmt: skip
    for _, here in place.cases() if decides else ():
        if not here.all():
            return np.flatnonzero(~here), int(here.sum()), decides[-1]
    return None


def _diagnostic(span: Span | None, name: str, missing: Any, come: int, decides: Expr) -> Diagnostic:
    first, last = int(missing[0]), int(missing[-1])
    who = f"thread {first}" if first == last else f"threads {first} to {last}"
    if len(missing) != last - first + 1:
        who = f"{len(missing)} threads, {first} among them,"
    verb = "never comes" if first == last else "never come"
    place = decides.span
    ways = "move it out of the branch, so that every thread reaches it"
    if name == "T.sync_threads" and come % 32 == 0:
        ways += f", or let only those {come} threads meet: `T.sync_threads(1, {come})`"
    return make_diagnostic(
        "TL510",
        f"`{name}` waits for all threads of the block, and {who} {verb} here",
        span=span,
        label="the kernel hangs here",
        labels=() if place is None else (Label(place, "differs between threads"),),
        help=ways,
    )
