"""Which promises does the compiler not keep, because the memory they are about may change? (TL229)

    T.assume(lengths[0] < 64)  # `lengths` is a shared tile that the kernel fills

A promise about an element holds until somebody writes the buffer, and no pass follows that. A name
for the value keeps it: what is promised of a name holds wherever it is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses, storage
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Binary, Expr, Load, VarRef, walk
from tilelang.program.stmt import Assume, Function, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label, Span


def check(function: Function) -> Iterator[Diagnostic]:
    """Promises on elements of buffers that the kernel writes."""
    promises = [s for s in walk_statements(function.body) if isinstance(s, Assume)]
    if not promises:
        return
    written = _written(function)
    for promise in promises:
        for part in _parts(promise.condition):
            load = next((n for n in _loads(part) if storage(n.buffer) in written), None)
            if load is not None:
                yield _unused(promise, part, load, written[storage(load.buffer)])


def _written(function: Function) -> dict[Buffer, Span | None]:
    """The buffers that the kernel writes, each with the place where it first does."""
    found: dict[Buffer, Span | None] = {}
    for stmt in walk_statements(function.body):
        for access in accesses(stmt):
            if access.kind != "read":
                found.setdefault(storage(access.buffer), access.span or stmt.span)
    return found


def _parts(condition: Expr) -> Iterator[Expr]:
    """The parts of a conjunction: each is a promise by itself."""
    if isinstance(condition, Binary) and condition.op == "and":
        yield from _parts(condition.left)
        yield from _parts(condition.right)
    else:
        yield condition


def _loads(value: Expr) -> Iterator[Load]:
    return (n for n in walk(value) if isinstance(n, Load))


def _unused(promise: Assume, part: Expr, load: Load, at: Span | None) -> Diagnostic:
    name = load.buffer.name
    what = f"`{name}`" if isinstance(load, VarRef) else f"an element of `{name}`"
    return make_diagnostic(
        "TL229",
        f"`T.assume({part})` is not used: it is about {what}, which this kernel writes",
        span=promise.span if isinstance(load, VarRef) else load.span or promise.span,
        label="may change after this",
        labels=() if at is None else (Label(at, "written here"),),
        help=f"name the value, and promise and index with the name: `at = {load}`, then "
        "`T.assume(at …)`",
    )
