"""What does a hover say about a value beyond its type? One line per fact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelang.program.arith import constant_value
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var, VarRef
from tilelang.program.text import expr_text
from tilelang_lsp.describe_budget import byte_text

_KINDS = {
    "dim": "run-time dimension, taken from a tensor's shape",
    "const": "compile-time dimension, taken from a tensor's shape",
    "symbol": "compile-time value that the file leaves open",
    "block": "block index of the launch",
    "thread": "thread index in the block",
    "param": "scalar argument of the kernel",
}


def notes(value: Any) -> tuple[str, ...]:
    """Facts about the value of a symbol."""
    match value:
        case VarRef():
            return ("mutable scalar of each thread",)
        case Buffer():
            return tuple(_buffer_notes(value))
        case Var(kind="let", definition=definition) if definition is not None:
            return (f"= {expr_text(definition)}",)
        case Var(kind=kind) if kind in _KINDS:
            return (_KINDS[kind],)
        case _:
            return ()


def _buffer_notes(buffer: Buffer) -> Iterator[str]:
    count = _element_count(buffer)
    if count is not None and not buffer.is_global:
        size = -(-count * buffer.dtype.bits * buffer.dtype.lanes // 8)
        yield f"{count} elements, {byte_text(size)} per block"
    if buffer.strides is not None:
        yield f"strides ({', '.join(expr_text(s) for s in buffer.strides)})"
    if buffer.source is not None:
        yield f"a view of `{buffer.source.name}`"
    if buffer.nullable:
        yield "may be None"
    if buffer.role == "output":
        yield "allocated by the runtime and returned"


def _element_count(buffer: Buffer) -> int | None:
    count = 1
    for extent in buffer.shape:
        number = constant_value(extent)
        if number is None:
            return None
        count *= number
    return count if buffer.dtype.bits else None
