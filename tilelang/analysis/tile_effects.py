"""Which buffers does a statement read and write, while tile operations are whole?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.gpu_context import is_whole
from tilelang.ir.nests import nest_loops, opens_nest
from tilelang.ir.tile_op import TileRegion, called_op
from tilelang.ir.visit import collect, statements
from tilelang.ops import OP_BY_NAME

_SILENT = ("annotate", "assume")


@dataclass(slots=True)
class Effects:
    """Buffers read before they are written whole, and buffers written: True where all of it
    certainly is. Views count as what they look at."""

    reads: set[Any] = field(default_factory=set)
    writes: dict[Any, bool] = field(default_factory=dict)

    def touches(self) -> set[Any]:
        """Everything read or written."""
        return self.reads | set(self.writes)


def effects_of(stmt: Any, views: Mapping[Any, Any]) -> Effects:
    """The effects of `stmt`, everything in it included."""
    found = Effects()
    _Collector(views, found).statement(stmt, True)
    return found


class _Collector:
    def __init__(self, views: Mapping[Any, Any], found: Effects) -> None:
        self._views, self._found = views, found

    def statement(self, s: Any, certain: bool) -> None:
        """`certain`: nothing may keep `s` from being executed."""
        if isinstance(s, tirx.SeqStmt):
            for stmt in s.seq:
                self.statement(stmt, certain)
        elif isinstance(s, tirx.AttrStmt):
            self.statement(s.body, certain)
        elif isinstance(s, tirx.For):
            self._loads(s.min, s.extent)
            whole = _written_whole(s) if opens_nest(s) and certain else None
            self.statement(s.body, False)
            if whole is not None:
                self._found.writes[self._root(whole)] = True
        elif isinstance(s, tirx.While):
            self._loads(s.condition)
            self.statement(s.body, False)
        elif isinstance(s, tirx.IfThenElse):
            self._loads(s.condition)
            self.statement(s.then_case, False)
            if s.else_case is not None:
                self.statement(s.else_case, False)
        elif isinstance(s, tirx.BufferStore):
            self._loads(s.value, *s.indices)
            self._write(s.buffer, False)
        elif isinstance(s, tirx.Bind):
            self._loads(s.value)
        elif isinstance(s, tirx.Evaluate):
            self._evaluate(s, certain)
        elif isinstance(s, tirx.AssertStmt):
            self._loads(s.condition)

    def _evaluate(self, s: Any, certain: bool) -> None:
        name = called_op(s)
        if name in _SILENT:
            return
        op = OP_BY_NAME.get(name or "")
        if op is None:
            self._loads(s.value)
            return
        made = op.from_call(s.value)
        for load in collect(s.value, tirx.TensorLoad):
            self._read(load.source)
        for region in made.reads():
            self._read(region.buffer)
        for region in made.writes():
            self._write(region.buffer, certain and _covers(region))

    def _loads(self, *exprs: Any) -> None:
        for e in exprs:
            for load in collect(e, tirx.TensorLoad):
                self._read(load.source)
            for call in collect(e, tirx.Call):
                for arg in call.args:
                    if isinstance(arg, tirx.TensorRegion) or tirx.is_buffer_var(arg):
                        # An operation of a thread may read and write what it is given.
                        buffer = TileRegion.of(arg).buffer
                        self._read(buffer)
                        self._write(buffer, False)

    def _read(self, buffer: Any) -> None:
        root = self._root(buffer)
        if not self._found.writes.get(root, False):
            self._found.reads.add(root)

    def _write(self, buffer: Any, whole: bool) -> None:
        root = self._root(buffer)
        whole = whole and root.same_as(buffer)
        self._found.writes[root] = whole or self._found.writes.get(root, False)

    def _root(self, buffer: Any) -> Any:
        return self._views.get(buffer, buffer)


def _covers(region: TileRegion) -> bool:
    return is_whole(region)


def _written_whole(loop: Any) -> Any | None:
    """The buffer of which a parallel nest certainly writes every element, if there is one."""
    loops = nest_loops(loop)
    body = statements(loops[-1].body)
    stores = [s for s in body if isinstance(s, tirx.BufferStore)]
    for store in stores:
        shape, indices = list(store.buffer.shape), list(store.indices)
        if len(loops) == len(shape) and all(
            isinstance(i, tirx.Var) and i.same_as(x.loop_var) and build.is_int(x.min, 0)
            and tirx.structural_equal(x.extent, d)
            for i, x, d in zip(indices, loops, shape, strict=True)
        ):  # fmt: skip
            return store.buffer
    return None


def copied_tile(stmt: Any) -> tuple[Any, Any] | None:
    """Source and destination of a statement that only moves elements from one buffer to another:
    T.copy, or a parallel nest of one such store."""
    if called_op(stmt) in ("copy", "async_copy"):
        source, destination = (TileRegion.of(a).buffer for a in list(stmt.value.args)[:2])
        return source, destination
    if not opens_nest(stmt):
        return None
    body = statements(nest_loops(stmt)[-1].body)
    if len(body) != 1 or not isinstance(body[0], tirx.BufferStore):
        return None
    value = body[0].value
    while isinstance(value, tirx.Cast):
        value = value.value
    return (value.source, body[0].buffer) if isinstance(value, tirx.TensorLoad) else None


def unwrapped(stmt: Any) -> Any:
    """`stmt` without the layouts that are written around it."""
    while isinstance(stmt, tirx.AttrStmt) and str(stmt.attr_key) == attrs.LOOP_LAYOUT:
        stmt = stmt.body
    return stmt
