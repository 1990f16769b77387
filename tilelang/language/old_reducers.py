"""What does a reducer with `replication=` mean, which is used as if it were a fragment?

Before: acc = T.alloc_reducer((n,), "float32", replication="all"); T.clear(acc)
        for i, j in T.Parallel(n, k): acc[i] += x[i, j]
        T.finalize_reducer(acc)                  # acc is read from here on
After:  acc = T.alloc_fragment((n,), "float32"); acc_parts = T.alloc_reducer((n,), "float32")
        T.reducer_init(acc_parts, 0)
        for i, j in T.Parallel(n, k): T.reducer_update(acc_parts[i], x[i, j])
        T.finalize_reducer(acc_parts, acc)

Each thread has a share of its own until the end, which no fragment could say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelang.program import arith
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import INT32, Binary, Expr, Intrinsic, Load
from tilelang.program.indexing import region_of
from tilelang.program.stmt import (
    Allocate,
    Block,
    Evaluate,
    For,
    If,
    Launch,
    Scoped,
    Stmt,
    Store,
    TileOp,
    While,
    walk_statements,
)
from tilelang_diagnostics.model import Diagnostic, Label

_OPERATORS = {"+": "sum", "&": "bitand", "|": "bitor", "^": "bitxor", "max": "max", "min": "min"}


def with_shares(body: Block) -> tuple[Block, tuple[Diagnostic, ...]]:
    """`body` with a share per thread for each such reducer, and what is no contribution."""
    finalised = [
        s.args[0].buffer
        for s in walk_statements(body)
        if isinstance(s, TileOp) and s.name == "reducer_finalize" and isinstance(s.args[0], Region)
    ]
    parts = {b: _parts(b) for b in finalised if dict(b.attrs).get("replication") is not None}
    if not parts:
        return body, ()
    rewriter = _Rewriter(parts)
    return rewriter.block(body, parallel=False), tuple(rewriter.found)


def _parts(buffer: Buffer) -> Buffer:
    attrs = (("op", dict(buffer.attrs).get("op", "sum")), ("replication", None))
    return replace(buffer, name=f"{buffer.name}_parts", scope_name="local.reducer", attrs=attrs)


class _Rewriter:
    """Between its initialisation and its end, in the order of the text, a reducer is open."""

    def __init__(self, parts: dict[Buffer, Buffer]) -> None:
        self._parts = parts
        self._open: set[Buffer] = set()
        self.found: list[Diagnostic] = []

    def block(self, block: Block, parallel: bool) -> Block:
        return tuple(new for stmt in block for new in self._statement(stmt, parallel))

    def _statement(self, s: Stmt, parallel: bool) -> tuple[Stmt, ...]:
        match s:
            case For(kind=kind, body=body):
                return (replace(s, body=self.block(body, parallel or kind == "parallel")),)
            case While(body=body) | Scoped(body=body) | Launch(body=body):
                return (replace(s, body=self.block(body, parallel)),)
            case If(then=then, orelse=orelse):
                return (
                    replace(
                        s, then=self.block(then, parallel), orelse=self.block(orelse, parallel)
                    ),
                )
            case Allocate(buffer=buffer) if buffer in self._parts:
                return s, Allocate(self._parts[buffer], span=s.span, calls=s.calls)
            case TileOp(name="fill" | "reducer_init" | "reducer_finalize", args=args):
                return (self._tile_op(s, args[0]),)
            case Store(buffer=buffer) if buffer in self._open:
                return (self._contribution(s, parallel),)
            case _:
                return (s,)

    def _tile_op(self, s: TileOp, first: Any) -> Stmt:
        region = region_of(first)
        if region is None or region.buffer not in self._parts:
            return s
        buffer, share = region.buffer, replace(region, buffer=self._parts[region.buffer])
        if s.name != "reducer_finalize":
            self._open.add(buffer)
            return replace(s, name="reducer_init", args=(share, *s.args[1:]), attrs=())
        self._open.discard(buffer)
        return replace(s, args=(share, *(s.args[1:] or (region,))))

    def _contribution(self, s: Store, parallel: bool) -> Stmt:
        """`acc[i] += value` as an update; anything else would be the share of one thread."""
        share = self._parts[s.buffer]
        value = _added(s, dict(share.attrs)["op"]) if parallel else None
        if value is None:
            self.found.append(_refused(s, parallel))
            return s
        element = region_of(Load(share, s.indices, share.dtype, s.span))
        assert isinstance(element, Region)
        update = Intrinsic("reducer_update", (element, value), INT32, s.span)
        return Evaluate(update, span=s.span, calls=s.calls)


def _added(s: Store, op: str) -> Expr | None:
    """What `s` combines its element with by `op`; None if it does something else."""
    value = s.value
    if isinstance(value, Binary) and _OPERATORS.get(value.op) == op:
        pair = (value.left, value.right)
    elif isinstance(value, Intrinsic) and _OPERATORS.get(value.name) == op and len(value.args) == 2:
        pair = value.args  # type: ignore[assignment]
    else:
        return None
    for own, other in (pair, pair[::-1]):
        if isinstance(own, Load) and own.buffer is s.buffer:
            if all(arith.same(x, y) for x, y in zip(own.indices, s.indices, strict=True)):
                return other
    return None


def _refused(s: Store, parallel: bool) -> Diagnostic:
    name, op = s.buffer.name, dict(s.buffer.attrs).get("op", "sum")
    form = {
        "sum": f"{name}[…] += value",
        "max": f"{name}[…] = T.max({name}[…], value)",
        "min": f"{name}[…] = T.min({name}[…], value)",
    }.get(str(op), "the same operator")
    labels = () if s.buffer.span is None else (Label(s.buffer.span, f"`{name}` is a reducer"),)
    return make_diagnostic(
        "TL187",
        f"an element of the reducer `{name}` is assigned, not contributed to by `{op}`"
        if parallel
        else f"`{name}` is updated outside `T.Parallel`",
        span=s.span,
        label="each thread has a share of its own until `T.finalize_reducer`",
        labels=labels,
        help=f"write `{form}` in `for … in T.Parallel(…)`",
    )
