"""Which parameters does a kernel write to or add to, and which hold addresses?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tilelang.program import expr as ex
from tilelang.program.accesses import accesses, storage
from tilelang.program.buffer import Buffer
from tilelang.program.stmt import Function, walk_statements


def written_parameters(function: Function) -> frozenset[Buffer]:
    """The tensor parameters something is stored to, through views of them too."""
    found = {
        storage(access.buffer)
        for stmt in walk_statements(function.body)
        for access in accesses(stmt)
        if access.kind != "read" and access.certain
    }
    return frozenset(p for p in function.params if isinstance(p, Buffer) and p in found)


def updated_parameters(function: Function) -> frozenset[Buffer]:
    """The tensor parameters whose old elements take part in what is stored there."""
    kinds: dict[Buffer, set[str]] = {}
    for stmt in walk_statements(function.body):
        for access in accesses(stmt):
            kinds.setdefault(storage(access.buffer), set()).add(access.kind)
    return frozenset(
        p for p in function.params
        if isinstance(p, Buffer) and (found := kinds.get(p))
        and ("update" in found or found >= {"read", "write"})
    )  # fmt: skip


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
