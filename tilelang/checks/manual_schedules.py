"""Do the `stage` and `order` lists of a pipeline fit its body? (TL501, TL503, TL506)

    for k in T.Pipelined(4, order=[0, 1], stage=[1, 0]):
        T.copy(A[k * 32], tile)                  # stage 1: works on iteration k - 1
        ... tile[i] ...                          # stage 0: reads the tile before it is there

Each scheduled statement has an entry. Binding a scalar is none: it is computed anew in every stage
that needs it, unless it reads what the loop writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses, storage, variables
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Intrinsic, Var, walk
from tilelang.program.scalar_ops import has_effect
from tilelang.program.stmt import (
    Allocate,
    Annotate,
    Assume,
    For,
    Function,
    Let,
    Stmt,
    expressions,
    walk_statements,
)
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Loops with a schedule of their own."""
    for stmt in walk_statements(function.body):
        if isinstance(stmt, For) and stmt.kind == "pipelined":
            order, stage = stmt.attr("order"), stmt.attr("stage")
            if isinstance(order, tuple) and isinstance(stage, tuple) and not stmt.attr("group"):
                yield from _check_loop(stmt, order, stage)


def _check_loop(loop: For, order: tuple[int, ...], stage: tuple[int, ...]) -> Iterator[Diagnostic]:
    scheduled = [s for s in loop.body if _is_scheduled(s, loop)]
    if len(order) != len(scheduled) or len(stage) != len(scheduled):
        yield _wrong_length(loop, scheduled, len(stage))
        return
    if any(not isinstance(n, int) or n < 0 for n in (*order, *stage)):
        return  # a negative entry leaves the statement to the compiler
    yield from _check_producers(scheduled, order, stage)
    yield from _check_replays(loop, scheduled, stage)


def _is_scheduled(stmt: Stmt, loop: For) -> bool:
    if isinstance(stmt, (Allocate, Annotate, Assume)):
        return False
    if not isinstance(stmt, Let):
        return True
    written = _touched(tuple(s for s in loop.body if s is not stmt), "write")
    return any(storage(a.buffer) in written for a in accesses(stmt))


def _touched(block: tuple[Stmt, ...], kind: str) -> set[Buffer]:
    """Buffers that statements read, or write (updates count as both)."""
    return {
        storage(access.buffer)
        for stmt in walk_statements(block)
        for access in accesses(stmt)
        if access.kind in (kind, "update")
    }


def _wrong_length(loop: For, scheduled: list[Stmt], given: int) -> Diagnostic:
    shown = [Label(s.span, f"statement {n}") for n, s in enumerate(scheduled) if s.span is not None]
    count = len(scheduled)
    return make_diagnostic(
        "TL501",
        f"the schedule has {counted(given, 'entry')} for {counted(count, 'statement')}",
        span=loop.span,
        label="`stage` and `order` have one entry per statement",
        labels=tuple(shown),
        help=f"give both lists {counted(count, 'entry')}; bound scalars do not count",
    )


def _check_producers(
    scheduled: list[Stmt], order: tuple[int, ...], stage: tuple[int, ...]
) -> Iterator[Diagnostic]:
    """What writes a buffer runs no later than what reads it afterwards."""
    writes = [_touched((s,), "write") for s in scheduled]
    reads = [_touched((s,), "read") for s in scheduled]
    for first in range(len(scheduled)):
        for second in range(first + 1, len(scheduled)):
            shared = sorted(b.name for b in writes[first] & reads[second] if not b.is_global)
            late = stage[first] > stage[second] or (
                stage[first] == stage[second] and order[first] > order[second]
            )
            if shared and late:
                yield _late_producer(shared[0], scheduled[first], scheduled[second], (
                    (stage[first], order[first]), (stage[second], order[second])
                ))  # fmt: skip
                return


def _late_producer(
    name: str, producer: Stmt, consumer: Stmt, places: tuple[tuple[int, int], tuple[int, int]]
) -> Diagnostic:
    (stage, position), (needed, needed_position) = places
    when = f"stage {stage}" if stage != needed else f"place {position}"
    reader = f"stage {needed}" if stage != needed else f"place {needed_position}"
    labels = () if consumer.span is None else (Label(consumer.span, f"read here, in {reader}"),)
    return make_diagnostic(
        "TL503",
        f"`{name}` is written in {when} and read in {reader} of the pipeline",
        span=producer.span,
        label="written here",
        labels=labels,
        help=f"put what writes `{name}` into the same or an earlier stage, before what reads it",
    )


def _check_replays(
    loop: For, scheduled: list[Stmt], stage: tuple[int, ...]
) -> Iterator[Diagnostic]:
    """A scalar that several stages use is computed in each: that must not be noticed."""
    for stmt in loop.body:
        if not isinstance(stmt, Let) or _is_scheduled(stmt, loop):
            continue
        effect = next((n for n in walk(stmt.value) if _has_effect(n)), None)
        users = [(s, n) for s, n in zip(scheduled, stage, strict=True) if _uses(s, stmt.var)]
        if effect is None or len({n for _, n in users}) < 2:
            continue
        labels = tuple(Label(s.span, f"used in stage {n}") for s, n in users if s.span is not None)
        yield make_diagnostic(
            "TL506",
            f"`{stmt.var.name}` is used in several stages and cannot be computed again in each",
            span=stmt.span,
            label="has an effect every time it runs",
            labels=labels,
            help=f"store `{stmt.var.name}` in a buffer, or use `T.serial`",
        )


def _has_effect(node: Expr) -> bool:
    return isinstance(node, Intrinsic) and has_effect(node.name)


def _uses(stmt: Stmt, var: Var) -> bool:
    return any(var in variables(e) for s in walk_statements((stmt,)) for e in expressions(s))
