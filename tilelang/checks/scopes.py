"""Is a value used where it does not exist any more? (TL134)

    rows = []
    for i in T.serial(4):
        rows.append(A[i])        # an expression of this loop's i
    B[0] = rows[0]               # which i?

Names end with their loop or branch; what is kept in a Python container does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses, storage
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Var, walk
from tilelang.program.stmt import (
    Allocate,
    Block,
    For,
    Function,
    Launch,
    Let,
    Stmt,
    bodies,
    expressions,
    walk_statements,
)
from tilelang_diagnostics.model import Diagnostic, Label

_ENDING = ("loop", "let", "block", "thread")


def check(function: Function) -> Iterator[Diagnostic]:
    """Uses of loop variables and named values outside of where they are bound."""
    known = {v for s in walk_statements(function.body) for v in _bound(s)}
    said: set[Var | Buffer] = set()
    for stmt, value in _strays(function.body, frozenset()):
        if value in known and value not in said:
            said.add(value)
            yield _diagnostic(stmt, value)


def _strays(block: Block, bound: frozenset[Var | Buffer]) -> Iterator[tuple[Stmt, Var | Buffer]]:
    for stmt in block:
        for expression in expressions(stmt):
            for node in walk(expression):
                if isinstance(node, Var) and node.kind in _ENDING and node not in bound:
                    yield stmt, node
        inner = bound | set(_bound(stmt))
        for access in accesses(stmt):
            if storage(access.buffer) not in inner:
                yield stmt, storage(access.buffer)
        for body in bodies(stmt):
            yield from _strays(body, inner)
        if isinstance(stmt, Let | Allocate):
            bound = inner


def _bound(stmt: Stmt) -> tuple[Var | Buffer, ...]:
    match stmt:
        case For(loop_vars=loop_vars):
            return tuple(v.var for v in loop_vars)
        case Launch(blocks=blocks, threads=threads):
            return tuple(v for v, _ in (*blocks, *threads))
        case Let(var=var):
            return (var,)
        case Allocate(buffer=buffer):
            return (buffer,)
        case _:
            return ()


def _diagnostic(stmt: Stmt, value: Var | Buffer) -> Diagnostic:
    name, is_buffer = value.name, isinstance(value, Buffer)
    labels = () if value.span is None else (Label(value.span, f"`{name}` is bound here"),)
    return make_diagnostic(
        "TL134",
        f"{'buffer' if is_buffer else 'a value that depends on'} `{name}` is used outside the "
        "branch or loop that defines it",
        span=stmt.span,
        label=f"`{name}` does not exist here",
        labels=labels,
        help=f"allocate `{name}` before it"
        if is_buffer
        else "store it in a buffer or a `T.alloc_var` inside, and read that here",
    )
