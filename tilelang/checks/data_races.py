"""Do two iterations of a `T.Parallel` write the same element? (TL240)

    for i, j in T.Parallel(N, M):
        total[i] += data[i, j]          # all j write total[i] at once

A store whose index leaves out a loop variable is a race unless the stored value leaves it out too
(then all iterations write the same) or a condition pins the variable.

A private variable is no race, and a sum in it is no sum either: each thread adds up the iterations
that fall to it. That is said where nothing in the kernel could put the parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tilelang.program.accesses import (
    Context,
    accesses,
    storage,
    variables,
    walk_with_context,
)
from tilelang.program.arith import constant_value, same, substitute
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, make_diagnostic
from tilelang.program.expr import Binary, Const, Expr, Intrinsic, Load, Var, walk
from tilelang.program.scalar_ops import has_effect
from tilelang.program.stmt import (
    Allocate,
    Function,
    Let,
    LoopVar,
    Store,
    TileOp,
    expressions,
    walk_statements,
)
from tilelang_diagnostics.model import Diagnostic, Label

_PRIVATE = ("local", "local.var")


def check(function: Function) -> Iterator[Diagnostic]:
    """Stores inside T.Parallel that several iterations aim at one element."""
    lets: dict[Var, Expr] = {}

    @cache  # few programs have a store that it matters for
    def may_be_private() -> set[Buffer] | None:
        """Buffers that are right as they are; None where threads are told apart, as all are."""
        combined = _combined(function)
        return None if combined is None else combined | _own_of_iterations(function)

    for stmt, context in walk_with_context(function.body):
        if isinstance(stmt, Let):
            lets[stmt.var] = stmt.value
        if isinstance(stmt, Store) and context.parallel_vars:
            if stmt.buffer.scope_name in _PRIVATE:
                known = may_be_private()
                if known is not None and stmt.buffer not in known:
                    yield from _check_private(stmt, context, lets)
            elif not stmt.buffer.is_reducer:
                yield from _check_store(stmt, context, lets)


def _combined(function: Function) -> set[Buffer] | None:
    """Private buffers that threads exchange or add up; None where threads are told apart."""
    found: set[Buffer] = set()
    for stmt in walk_statements(function.body):
        for expression in expressions(stmt):
            for node in walk(expression):
                if isinstance(node, Var) and node.kind == "thread":
                    return None
                if isinstance(node, Intrinsic) and has_effect(node.name):
                    found |= _read(node)
        if isinstance(stmt, TileOp):
            found |= {storage(access.buffer) for access in accesses(stmt)}
    return found


def _own_of_iterations(function: Function) -> set[Buffer]:
    """Private buffers that an iteration of a `T.Parallel` allocates, or sets anew."""
    return {
        stmt.buffer
        for stmt, context in walk_with_context(function.body)
        if context.parallel_vars
        and (isinstance(stmt, Allocate) or (isinstance(stmt, Store) and not _updates(stmt)))
    }


def _updates(stmt: Store) -> bool:
    return any(isinstance(n, Load) and n.buffer is stmt.buffer for n in walk(stmt.value))


def _read(expr: Expr) -> set[Buffer]:
    loads = (node for node in walk(expr) if isinstance(node, Load))
    regions = (a.buffer for n in walk(expr) if isinstance(n, Intrinsic) for a in n.args
               if isinstance(a, Region))  # fmt: skip
    return {storage(load.buffer) for load in loads} | {storage(b) for b in regions}


def _check_private(stmt: Store, context: Context, lets: dict[Var, Expr]) -> Iterator[Diagnostic]:
    """`total += A[i]`: a thread adds up its own iterations only."""
    many = [v for v in context.parallel_vars if constant_value(v.extent) != 1]
    if not many or _all_variables(stmt.indices, lets) & {v.var for v in many}:
        return
    if _updates(stmt):
        yield make_diagnostic(
            "TL240",
            f"`{stmt.buffer.name}` is private to each thread, and gets only the iterations of "
            "`T.Parallel` that fall to it",
            span=stmt.span,
            label="each thread adds up its own part",
            labels=tuple(
                Label(v.var.span, f"runs over `{v.var.name}` in parallel")
                for v in many if v.var.span is not None
            ),
            help="reduce a fragment with `T.reduce_sum` and its like, or loop with `T.serial`",
        )  # fmt: skip


def _check_store(stmt: Store, context: Context, lets: dict[Var, Expr]) -> Iterator[Diagnostic]:
    indexed = _all_variables(stmt.indices, lets)
    pinned = _all_variables(context.conditions, lets)
    stored = _all_variables((stmt.value,), lets)
    for loop_var in context.parallel_vars:
        var = loop_var.var
        if constant_value(loop_var.extent) == 1 or var in pinned:
            continue
        # Indices read from memory may well be distinct; only arithmetic ones prove a race.
        if _read_memory(stmt.indices, lets):
            continue
        other = 1 if var not in indexed else _collides_with_zero(stmt.indices, loop_var)
        if other is None:
            continue
        updates = _updates(stmt)
        if var in stored or updates:
            yield _race(stmt, stmt.buffer, loop_var.var, updates, other)
            return
    yield from _neighbour_read(stmt, context, lets)


def _collides_with_zero(indices: tuple[Expr, ...], loop_var: LoopVar) -> int | None:
    """A value of the variable that gives the same element as 0, as in `A[j // 32]` or `A[j % 8]`.

    Candidates are 1 and the constants of the indices: where `//` and `%` repeat themselves.
    """
    var, extent = loop_var.var, constant_value(loop_var.extent)
    if constant_value(loop_var.start) != 0 or not _divides(indices):
        return None
    constants = {
        int(n.value)
        for i in indices
        for n in walk(i)
        if isinstance(n, Const) and n.dtype.is_integer
    }
    candidates = [v for v in sorted({1, *constants}) if v > 0 and (extent is None or v < extent)]
    try:
        first, *others = ([substitute(i, {var: Const(v, var.dtype)}) for i in indices]
                          for v in (0, *candidates))  # fmt: skip
    except Reject:
        return None  # a division by the variable itself
    for value, second in zip(candidates, others, strict=True):
        if all(same(a, b) for a, b in zip(first, second, strict=True)):
            return value
    return None


def _divides(indices: tuple[Expr, ...]) -> bool:
    """Whether an index can repeat: a sum of products of distinct variables cannot."""
    return any(isinstance(n, Binary) and n.op in ("//", "%") for i in indices for n in walk(i))


def _neighbour_read(stmt: Store, context: Context, lets: dict[Var, Expr]) -> Iterator[Diagnostic]:
    """`A[i] = A[j] + 1`: another iteration writes what this one reads."""
    if context.conditions:
        return
    parallel = {v.var for v in context.parallel_vars}
    for node in walk(stmt.value):
        if not isinstance(node, Load) or node.buffer is not stmt.buffer:
            continue
        if all(same(a, b) for a, b in zip(node.indices, stmt.indices, strict=True)):
            continue
        reads = _all_variables(node.indices, lets) & parallel
        writes = _all_variables(stmt.indices, lets) & parallel
        if not _read_memory(node.indices, lets) and reads and writes and reads != writes:
            yield make_diagnostic(
                "TL240",
                f"an iteration of `T.Parallel` reads an element of `{stmt.buffer.name}` that "
                "another one writes",
                span=stmt.span,
                label="written here",
                labels=()
                if node.span is None
                else (Label(node.span, "read here, at another index"),),
                help="read from a copy of the buffer",
            )
            return


def _race(stmt: Store, buffer: Buffer, var: Var, updates: bool, other: int) -> Diagnostic:
    shown = ", ".join(str(i) for i in stmt.indices)
    way_out = (
        f"reduce with `T.reduce_sum` over `{var.name}`, use `T.atomic_add`, or a serial loop "
        f"over `{var.name}`"
        if updates
        else f"index `{buffer.name}` by `{var.name}` too, or guard with `if {var.name} == …`"
    )
    labels = () if var.span is None else (Label(var.span, f"runs over `{var.name}` in parallel"),)
    return make_diagnostic(
        "TL240",
        f"iterations that differ only in `{var.name}` write the same element "
        f"`{buffer.name}[{shown}]`",
        span=stmt.span,
        label=f"the same element for {var.name}=0 and {var.name}={other}",
        labels=labels,
        notes=(f"for example {var.name}=0 and {var.name}={other}, all else equal",),
        help=way_out,
    )


def _all_variables(exprs: tuple[Expr, ...], lets: dict[Var, Expr]) -> set[Var]:
    out: set[Var] = set()
    for expr in exprs:
        for var in variables(expr):
            out.add(var)
            if var in lets and var.definition is None:
                out |= _all_variables((lets[var],), lets)
    return out


def _read_memory(exprs: tuple[Expr, ...], lets: dict[Var, Expr]) -> bool:
    """Whether any of `exprs`, named values included, depends on a load."""
    nodes = [node for expr in exprs for node in walk(expr)]
    named = tuple(lets[n] for n in nodes if isinstance(n, Var) and n in lets)
    return any(isinstance(n, Load) for n in nodes) or (bool(named) and _read_memory(named, lets))
