"""What each statement of a tile program reads and writes, and the loops and branches around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.arith import constant_value
from tilelang.program.bounds import Interval
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.tile_ops import SCHEMAS
from tilelang_diagnostics.model import Span

AccessKind = Literal["read", "write", "update"]


def _role(operation: str, operand: str) -> AccessKind:
    """What a tile operation does with one of the operands its schema names."""
    match operand.strip("?="):
        case "dst" if operation == "atomic":
            return "update"
        case "dst" | "col":
            return "write"
        case "C":
            return "update"
        case "reducer" if operation == "reducer_init":
            return "write"
        case _:
            return "read"


_ROLES: dict[str, tuple[AccessKind, ...]] = {
    name: tuple(_role(name, operand) for operand in schema.operands)
    for name, schema in SCHEMAS.items()
}


# Scalar operations that only read what they are given by reference; the others may write it.
_READING: Final = ("any_of", "all_of", "atomic_load", "ldg", "lds", "print_buffer")
_POINTER_KINDS: Final[dict[str, AccessKind]] = {"r": "read", "w": "write", "rw": "update"}


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One use of a buffer; `ranges` are the elements, points for single ones.

    Not `certain`: the address is taken, and nobody says what is done with it.
    """

    buffer: Buffer
    ranges: tuple[Range, ...]
    kind: AccessKind
    span: Span | None
    stmt: st.Stmt
    certain: bool = True


@dataclass(frozen=True, eq=False)
class Context:
    """What surrounds a statement, outermost first."""

    loops: tuple[st.For, ...] = ()
    conditions: tuple[ex.Expr, ...] = ()
    launch: st.Launch | None = None

    @cached_property
    def ranges(self) -> Mapping[ex.Var, Interval]:
        """Bounds of every loop, block and thread variable in scope."""
        out: dict[ex.Var, Interval] = {}
        if self.launch is not None:
            for var, extent in (*self.launch.blocks, *self.launch.threads):
                count = constant_value(extent)
                out[var] = (0, None if count is None else max(count - 1, 0))
        for loop in self.loops:
            for v in loop.loop_vars:
                out[v.var] = _loop_range(v)
        return out

    @property
    def parallel_vars(self) -> tuple[st.LoopVar, ...]:
        return tuple(v for loop in self.loops if loop.kind == "parallel" for v in loop.loop_vars)


def walk_with_context(
    block: st.Block, context: Context | None = None
) -> Iterator[tuple[st.Stmt, Context]]:
    """Every statement with its surroundings, in program order."""
    context = context or Context()
    for stmt in block:
        yield stmt, context
        match stmt:
            case st.For():
                inner = Context((*context.loops, stmt), context.conditions, context.launch)
                yield from walk_with_context(stmt.body, inner)
            case st.If(condition=condition, then=then, orelse=orelse):
                inner = Context(context.loops, (*context.conditions, condition), context.launch)
                yield from walk_with_context(then, inner)
                yield from walk_with_context(orelse, inner)
            case st.While(condition=condition, body=body):
                inner = Context(context.loops, (*context.conditions, condition), context.launch)
                yield from walk_with_context(body, inner)
            case st.Scoped(body=body):
                yield from walk_with_context(body, context)
            case st.Launch(body=body):
                inner = Context(context.loops, context.conditions, stmt)
                yield from walk_with_context(body, inner)
            case _:
                pass


@lru_cache(maxsize=1024)  # every check asks for those of every statement
def accesses(stmt: st.Stmt) -> tuple[Access, ...]:
    """Uses of buffers by `stmt` itself, nested blocks excluded; reads come before writes."""
    return tuple(_accesses(stmt))


def _accesses(stmt: st.Stmt) -> Iterator[Access]:
    match stmt:
        case st.TileOp(name=name, args=args):
            roles = _ROLES.get(name, ())
            later: list[Access] = []
            for position, arg in enumerate(args):
                if isinstance(arg, Region):
                    kind = _operand_kind(
                        stmt, roles[position] if position < len(roles) else "read", position
                    )
                    access = Access(arg.buffer, arg.ranges, kind, arg.span or stmt.span, stmt)
                    if kind == "write":
                        later.append(access)
                    else:
                        yield access
                    for r in arg.ranges:
                        yield from _reads(r.min, stmt)
                else:
                    yield from _reads(arg, stmt)
            yield from later
        case st.Store(buffer=buffer, indices=indices, value=value):
            yield from _reads(value, stmt)
            for index in indices:
                yield from _reads(index, stmt)
            yield Access(buffer, _points(indices), "write", stmt.span, stmt)
        case st.Let(value=value) | st.Evaluate(value=value):
            yield from _reads(value, stmt)
        case st.Allocate(buffer=buffer, init=init) if init is not None:
            yield from _reads(init, stmt)
            yield Access(buffer, _points((ex.Const(0, ex.INT32),)), "write", stmt.span, stmt)
        case st.If(condition=condition) | st.While(condition=condition):
            yield from _reads(condition, stmt)
        case st.Assert(condition=condition):
            yield from _reads(condition, stmt)
        case st.For(loop_vars=loop_vars):
            for v in loop_vars:
                yield from _reads(v.start, stmt)
                yield from _reads(v.extent, stmt)
        case st.Launch(blocks=blocks):
            for _, extent in blocks:
                yield from _reads(extent, stmt)
        case _:
            pass


def storage(buffer: Buffer) -> Buffer:
    """The buffer whose memory a view shows."""
    while buffer.source is not None:
        buffer = buffer.source
    return buffer


def variables(expr: ex.Expr) -> set[ex.Var]:
    """All variables of `expr`, those behind named values included."""
    out: set[ex.Var] = set()
    for node in ex.walk(expr):
        if isinstance(node, ex.Var):
            out.add(node)
            if node.definition is not None:
                out |= variables(node.definition)
    return out


def _operand_kind(stmt: st.TileOp, role: AccessKind, position: int) -> AccessKind:
    if role == "update" and "=clear_accum" in SCHEMAS[stmt.name].operands:
        clear = stmt.args[SCHEMAS[stmt.name].operands.index("=clear_accum")]
        always = isinstance(clear, ex.Expr) and constant_value(clear) == 1
        # A clear that depends on the iteration starts the accumulation itself.
        depends = isinstance(clear, ex.Expr) and constant_value(clear) is None
        return "write" if always or depends else "update"
    if stmt.name == "reduce" and position == 1:
        return "write" if stmt.attr("clear", True) else "update"
    if stmt.name == "scan" and position == 1 and len(stmt.args) == 2:
        return "write"
    return role


def _reads(expr: ex.Expr, stmt: st.Stmt) -> Iterator[Access]:
    for node in ex.walk(expr):
        if isinstance(node, ex.Load):
            yield Access(node.buffer, _points(node.indices), "read", node.span or stmt.span, stmt)
        elif isinstance(node, ex.Intrinsic):
            certain = node.name != "address_of"
            for position, arg in enumerate(node.args):
                if isinstance(arg, Region):
                    kind = _reference_kind(node, position)
                    span = node.span or stmt.span
                    yield Access(arg.buffer, arg.ranges, kind, span, stmt, certain)


def _reference_kind(call: ex.Intrinsic, position: int) -> AccessKind:
    """What a scalar operation does with the region it is given as operand `position`."""
    said = dict(call.attrs).get("access")
    if said is not None:
        return _POINTER_KINDS[said]
    if call.name.startswith(_READING) or (call.name.startswith("atomic_") and position > 0):
        return "read"
    if call.name.startswith("atomic_") and call.name != "atomic_store":
        return "update"
    return "write"  # it may be read too


def _points(indices: tuple[ex.Expr, ...]) -> tuple[Range, ...]:
    one = ex.Const(1, ex.INT32)
    return tuple(Range(i, one, is_point=True) for i in indices)


def _loop_range(v: st.LoopVar) -> Interval:
    start, count = constant_value(v.start), constant_value(v.extent)
    step = 1 if v.step is None else constant_value(v.step)
    if start is None or count is None or step is None or count < 1:
        return (start if step is None or step > 0 else None), None
    last = start + (count - 1) * step
    return min(start, last), max(start, last)
