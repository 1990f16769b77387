"""Which parameters does a kernel write to, and which hold addresses?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from tilelang.program import expr as ex
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import (
    Assert,
    Evaluate,
    For,
    Function,
    If,
    Let,
    Stmt,
    Store,
    TileOp,
    While,
    walk_statements,
)
from tilelang.program.tile_ops import SCHEMAS

# The operands each tile operation writes, by name; the schema says where they stand.
_WRITTEN: Final = frozenset({"dst", "C", "col", "reducer"})
_WRITING_CALLS: Final = ("atomic", "tma_", "call_extern", "store", "copy")


def written_parameters(function: Function) -> frozenset[Buffer]:
    """The tensor parameters something is stored to, through views of them too."""
    found = {storage(buffer) for stmt in walk_statements(function.body) for buffer in _writes(stmt)}
    return frozenset(p for p in function.params if isinstance(p, Buffer) and p in found)


def pointer_tables(function: Function) -> frozenset[Buffer]:
    """The tensor parameters whose elements are used as addresses."""
    found: set[Buffer] = set()
    for buffer in _buffers(function, set()):
        if buffer.pointer is not None:
            loads = (e for e in ex.walk(buffer.pointer) if isinstance(e, ex.Load))
            found.update(storage(load.buffer) for load in loads)
    return frozenset(found)


def _buffers(node: Any, seen: set[int]) -> Iterator[Buffer]:
    """Every buffer `node` mentions, through statements, expressions and regions."""
    if isinstance(node, tuple):
        for item in node:
            yield from _buffers(item, seen)
    elif is_dataclass(node) and id(node) not in seen:
        seen.add(id(node))
        if isinstance(node, Buffer):
            yield node
        for field in fields(node):
            yield from _buffers(getattr(node, field.name), seen)


def _writes(stmt: Stmt) -> Iterator[Buffer]:
    match stmt:
        case Store(buffer=buffer, value=value):
            yield buffer
            yield from _calls(value)
        case TileOp(name=name, args=args):
            schema = SCHEMAS.get(name)
            operands = schema.operands if schema else ()
            for position, arg in enumerate(args):
                known = position < len(operands)
                if isinstance(arg, Region) and (
                    not known or operands[position].strip("?=") in _WRITTEN
                ):
                    yield arg.buffer
        case Evaluate(value=value) | Let(value=value):
            yield from _calls(value)
        case If(condition=value) | While(condition=value) | Assert(condition=value):
            yield from _calls(value)
        case For(loop_vars=loop_vars):
            for loop_var in loop_vars:
                yield from _calls(loop_var.extent)
        case _:
            return


def _calls(value: ex.Expr) -> Iterator[Buffer]:
    for node in ex.walk(value):
        if isinstance(node, ex.Intrinsic) and node.name.startswith(_WRITING_CALLS):
            yield from (arg.buffer for arg in node.args if isinstance(arg, Region))
