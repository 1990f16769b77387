"""Statements of a tile program and the function that holds them.

Every statement knows the span of the Python statement it came from and, when it was inlined from
a macro or helper, the chain of calls that led there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tilelang.program.buffer import Buffer, Region
from tilelang.program.expr import Expr, Var
from tilelang_diagnostics.model import Frame, Span

Attrs: TypeAlias = tuple[tuple[str, Any], ...]
Block: TypeAlias = "tuple[Stmt, ...]"

LoopKind = Literal["serial", "unroll", "vectorized", "parallel", "pipelined", "cpu_parallel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """Where a statement came from."""

    span: Span | None
    calls: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(Node):
    """`buffer` exists from here to the end of the enclosing block; `init` for alloc_var."""

    buffer: Buffer
    init: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Let(Node):
    """`var` names the value of an expression for the rest of the block."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Store(Node):
    """`buffer[indices] = value`, value already of the buffer's dtype."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class TileOp(Node):
    """A collective operation on regions, by name (`copy`, `gemm`, `reduce` …).

    Operands that passes may rewrite (regions, expressions) are in `args`; literals in `attrs`.
    """

    name: str
    args: tuple[Region | Expr, ...]
    attrs: Attrs = ()

    def attr(self, key: str, default: Any = None) -> Any:
        return dict(self.attrs).get(key, default)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Node):
    """An expression evaluated for its effect (atomics, barriers, print)."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class LoopVar:
    """One loop variable with its range `[start, start + extent * step)` by `step`."""

    var: Var
    start: Expr
    extent: Expr
    step: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class For(Node):
    """A counted loop; several variables only for `parallel` (one elementwise nest)."""

    kind: LoopKind
    loop_vars: tuple[LoopVar, ...]
    body: Block
    attrs: Attrs = ()

    def attr(self, key: str, default: Any = None) -> Any:
        return dict(self.attrs).get(key, default)


@dataclass(frozen=True, slots=True, eq=False)
class While(Node):
    """Repeat `body` while `condition`, evaluated anew each time."""

    condition: Expr
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class If(Node):
    """A device branch."""

    condition: Expr
    then: Block
    orelse: Block = ()


@dataclass(frozen=True, slots=True, eq=False)
class Assert(Node):
    """Stops the kernel with `message` when `condition` is false."""

    condition: Expr
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Assume(Node):
    """A promise of the author: the prover may use `condition`."""

    condition: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Jump(Node):
    """`break`, `continue`, or `thread_return` (this thread is done)."""

    kind: Literal["break", "continue", "thread_return"]


@dataclass(frozen=True, slots=True, eq=False)
class Annotate(Node):
    """A statement that only informs later passes (`layout`, `safe_value`, `swizzle` …)."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Scoped(Node):
    """A `with` frame of the language other than a launch (`ws`, `attr`), around `body`."""

    kind: str
    args: tuple[Any, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Launch(Node):
    """One kernel launch: a grid of blocks, each of `threads` cooperating threads.

    `blocks` and `threads` pair each index variable with its extent, x first.
    """

    blocks: tuple[tuple[Var, Expr], ...]
    threads: tuple[tuple[Var, Expr], ...]
    body: Block
    attrs: Attrs = ()

    def attr(self, key: str, default: Any = None) -> Any:
        return dict(self.attrs).get(key, default)


Stmt: TypeAlias = (
    Allocate | Let | Store | TileOp | Evaluate | For | While | If | Assert | Assume | Jump
    | Annotate | Scoped | Launch
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A traced kernel: parameters in call order, then outputs the runtime allocates.

    `params` holds Buffers (tensors) and Vars (scalars); `outputs` are the returned `T.empty`
    buffers in return order, and are not in `params`.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    outputs: tuple[Buffer, ...]
    body: Block
    span: Span | None
    attrs: Attrs = field(default=())

    def attr(self, key: str, default: Any = None) -> Any:
        return dict(self.attrs).get(key, default)


def bodies(stmt: Stmt) -> tuple[Block, ...]:
    """The blocks nested directly in `stmt`."""
    match stmt:
        case For(body=body) | While(body=body) | Scoped(body=body) | Launch(body=body):
            return (body,)
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case _:
            return ()


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of `stmt` itself, nested blocks excluded; bounds of regions included."""
    match stmt:
        case Store(indices=indices, value=value):
            yield from (*indices, value)
        case Let(value=value) | Evaluate(value=value):
            yield value
        case If(condition=value) | While(condition=value) | Assert(condition=value):
            yield value
        case Assume(condition=value):
            yield value
        case Allocate(init=init):
            yield from () if init is None else (init,)
        case For(loop_vars=loop_vars):
            yield from (e for v in loop_vars for e in (v.start, v.extent))
        case Launch(blocks=blocks, threads=threads):
            yield from (extent for _, extent in (*blocks, *threads))
        case TileOp(args=args):
            for arg in args:
                if isinstance(arg, Region):
                    yield from (e for r in arg.ranges for e in (r.min, r.extent))
                else:
                    yield arg
        case _:
            return


def walk_statements(block: Block) -> Iterator[Stmt]:
    """Every statement of `block`, outermost first, in program order."""
    for stmt in block:
        yield stmt
        for inner in bodies(stmt):
            yield from walk_statements(inner)
