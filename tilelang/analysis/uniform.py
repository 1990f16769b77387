"""Which values are the same in all threads of a block?

A name or a private buffer is divergent when something assigned to it may differ between threads,
or when only some threads assign it. Memory that all threads share reads the same at the same
place: what one thread may be writing meanwhile is kept apart by barriers. While there are tiles,
an element of a fragment is one number, whoever holds it, and iterations of a parallel loop differ.
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.ir import attrs, tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.homes import FRAGMENT
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import collect, storage_roots

# Tile operations that give each thread the same, in memory of its own, if they take the same.
_ALIKE: Final = ("copy", "fill")


class Uniformity:
    """The divergent names of one function."""

    def __init__(self, node: Any) -> None:
        self._roots = storage_roots(node)
        self._divergent: set[Any] = set()
        self._size = -1
        while self._size != len(self._divergent):
            self._size = len(self._divergent)
            self._statement(node, False)

    def diverges(self, e: Any) -> bool:
        """Whether an expression may differ between threads."""
        if any(v in self._divergent for v in collect(e, tirx.Var)):
            return True
        for load in collect(e, tirx.TensorLoad):
            if self._root(load.source) in self._divergent:
                return True
        return any(_differs(c) for c in collect(e, tirx.Call))

    def _root(self, buffer: Any) -> Any:
        return self._roots.get(buffer, buffer)

    def _statement(self, s: Any, some: bool) -> None:
        """Note what `s` makes divergent; `some`: only some threads get here."""
        match type(s).__name__:
            case "SeqStmt":
                for stmt in s.seq:
                    self._statement(stmt, some)
            case "AttrStmt":
                if s.attr_key == attrs.THREAD_EXTENT:
                    if str(s.node.thread_tag) in attrs.THREAD_TAGS:
                        self._divergent.add(s.node.var)
                self._statement(s.body, some)
            case "For":
                shared_out = attrs.PARALLEL in s.annotations
                if shared_out or self.diverges(s.min) or self.diverges(s.extent):
                    some = True
                    self._divergent.add(s.loop_var)
                self._statement(s.body, some)
            case "While":
                self._statement(s.body, some or self.diverges(s.condition))
            case "IfThenElse":
                some = some or self.diverges(s.condition)
                self._statement(s.then_case, some)
                if s.else_case is not None:
                    self._statement(s.else_case, some)
            case "Bind":
                if self.diverges(s.value):
                    self._divergent.add(s.var)
                self._written_by_calls(s.value, some)
            case "BufferStore":
                if some or self.diverges(s.value) or any(self.diverges(i) for i in s.indices):
                    self._private(s.buffer)
            case "Evaluate":
                self._written_by_calls(s.value, some)

    def _private(self, buffer: Any) -> None:
        root = self._root(buffer)
        scope = str(root.scope())
        if scope.startswith("local") and scope != FRAGMENT:
            self._divergent.add(root)

    def _written_by_calls(self, e: Any, some: bool) -> None:
        for call in collect(e, tirx.Call):
            if not some and op_of(call) in _ALIKE and not self._takes_divergent(call):
                continue
            for arg in call.args:
                if isinstance(arg, tirx.TensorRegion):
                    self._private(arg.source)

    def _takes_divergent(self, call: Any) -> bool:
        """Whether an operand of a tile operation may differ between threads."""
        regions = collect(call, tirx.TensorRegion)
        return self.diverges(call) or any(self._root(r.source) in self._divergent for r in regions)


def _differs(call: Any) -> bool:
    """Whether the result of a call may differ though its operands do not."""
    op = op_of_call(call)
    return op is not None and op.result is not None and not (op.pure and bool(op.operands))
