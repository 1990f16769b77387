"""Which launches does a kernel consist of, and what comes before them?

A kernel's body is a sequence of host statements (bindings, assumptions, workspaces) and launches.
Device statements outside any launch form one of a single block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang.codegen.cpu_element import Unsupported
from tilelang.ir import attrs, build

_HOST = ("Bind", "AssertStmt", "DeclBuffer")


@dataclass(frozen=True, slots=True)
class Axis:
    """One blockIdx variable and the number of blocks along it."""

    var: Any
    extent: Any


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid of blocks (x first) around the code of one block."""

    blocks: tuple[Axis, ...]
    body: Any
    serial: bool = False
    note: str = ""


def split_launches(body: Any) -> tuple[list[Any], list[Launch]]:
    """Host statements, and the launches, of a kernel's body."""
    host: list[Any] = []
    launches: list[Launch] = []
    loose: list[Any] = []
    for stmt in _flat(body):
        if _thread_extent(stmt) is not None:
            if loose:
                launches.append(Launch((), build.seq(loose)))
                loose = []
            launches.append(_launch(stmt))
        elif _is_host(stmt) and not loose:
            host.append(stmt)
        elif not build.is_nothing(stmt):
            loose.append(stmt)
    if loose:
        launches.append(Launch((), build.seq(loose)))
    return host, launches


def _flat(stmt: Any) -> list[Any]:
    kind = type(stmt).__name__
    if kind == "SeqStmt":
        return [inner for part in stmt.seq for inner in _flat(part)]
    if kind == "AttrStmt" and _thread_extent(stmt) is None:
        return _flat(stmt.body)
    return [stmt]


def _thread_extent(stmt: Any) -> Any | None:
    if type(stmt).__name__ == "AttrStmt" and str(stmt.attr_key) == attrs.THREAD_EXTENT:
        return stmt.node
    return None


def _launch(stmt: Any) -> Launch:
    found: dict[str, Axis] = {}
    body = stmt
    while (axis := _thread_extent(body)) is not None:
        tag = str(axis.thread_tag)
        if tag in attrs.BLOCK_TAGS:
            found[tag] = Axis(axis.var, body.value)
        elif not build.is_int(body.value, 1) and _uses(body.body, axis.var):
            raise Unsupported(f"thread index {axis.var.name}", stmt)
        body = body.body
        while type(body).__name__ == "AttrStmt" and _thread_extent(body) is None:
            body = body.body
    blocks = tuple(found[tag] for tag in attrs.BLOCK_TAGS if tag in found)
    return Launch(blocks, body)


def _uses(body: Any, var: Any) -> bool:
    from tilelang.ir.visit import uses

    return uses(body, [var])


def _is_host(stmt: Any) -> bool:
    kind = type(stmt).__name__
    if kind == "Evaluate":
        return str(getattr(getattr(stmt.value, "op", None), "name", "")).endswith(".assume")
    return kind in _HOST or (kind == "AllocBuffer" and str(stmt.buffer.scope()) == "global")
