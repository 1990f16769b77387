"""Threads wait for each other where one reads or overwrites what another may have touched.

Before: A_s[…] = A[…]; C_l[…] += A_s[…]
After:  A_s[…] = A[…]; T.sync_threads(); C_l[…] += A_s[…]

Conservative: two statements that touch one shared buffer, one of them writing, are always kept
apart, whichever elements they touch. Loops are entered once more with what their own end leaves
open. Code that only some threads run gets no barrier inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang.analysis.uniform import Uniformity
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call, constants_of, op_of_call
from tilelang.ir.homes import SHARED
from tilelang.ir.visit import collect, storage_roots, with_body
from tilelang.passes.context import PassContext


def insert_barriers(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Put barriers between conflicting uses of shared memory."""
    inserter = _Insert(func)
    body, _ = inserter.statement(func.body, Touched())
    ctx.count("barriers", inserter.count)
    return with_body(func, body)


@dataclass(frozen=True, slots=True)
class Touched:
    """Shared buffers read and written since the last barrier."""

    reads: frozenset[Any] = frozenset()
    writes: frozenset[Any] = frozenset()

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.reads | other.reads, self.writes | other.writes)

    def conflicts(self, later: Touched) -> bool:
        """Whether `later` has to wait."""
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes)


class _Insert:
    def __init__(self, func: tirx.PrimFunc) -> None:
        self._roots = storage_roots(func.body)
        self._uniform = Uniformity(func.body)
        self.count = 0

    def statement(self, s: Any, before: Touched) -> tuple[Any, Touched]:
        """`s` with barriers, and what is open after it."""
        if isinstance(s, tirx.SeqStmt):
            return self._seq(s, before)
        if isinstance(s, tirx.AttrStmt):
            return self._attr(s, before)
        if isinstance(s, (tirx.For, tirx.While)) and self._is_entered(s):
            return self._loop(s, before)
        if isinstance(s, tirx.IfThenElse) and not self._uniform.diverges(s.condition):
            return self._branch(s, before)
        if _is_barrier(s):
            return s, Touched()
        own = self._touched(s)
        if before.conflicts(own):
            self.count += 1
            return build.seq([_barrier(s.span), s], s.span), own
        return s, before | own

    def _seq(self, s: Any, before: Touched) -> tuple[Any, Touched]:
        out = []
        for stmt in s.seq:
            new, before = self.statement(stmt, before)
            out.append(new)
        return build.seq(out, s.span), before

    def _attr(self, s: Any, before: Touched) -> tuple[Any, Touched]:
        body, after = self.statement(s.body, before)
        return tirx.AttrStmt(s.node, s.attr_key, s.value, body, s.span), after

    def _loop(self, s: Any, before: Touched) -> tuple[Any, Touched]:
        if before.conflicts(self._touched(s)):
            self.count += 1
            stmt, after = self._loop(s, Touched())
            return build.seq([_barrier(s.span), stmt], s.span), after
        start = self.count
        _, after = self.statement(s.body, before)
        self.count = start
        body, after = self.statement(s.body, before | after)
        if isinstance(s, tirx.While):
            return tirx.While(s.condition, body, s.span), before | after
        return build.replace_body(s, body), before | after

    def _branch(self, s: Any, before: Touched) -> tuple[Any, Touched]:
        own = self._touched(s.condition)
        if before.conflicts(own):
            self.count += 1
            stmt, after = self._branch(s, Touched())
            return build.seq([_barrier(s.span), stmt], s.span), after
        then, after = self.statement(s.then_case, before | own)
        orelse = None
        if s.else_case is not None:
            orelse, other = self.statement(s.else_case, before | own)
            after = after | other
        else:
            after = after | before | own
        return tirx.IfThenElse(s.condition, then, orelse, s.span), after

    def _is_entered(self, s: Any) -> bool:
        """Whether barriers may stand in a loop: all threads run it alike, in sequence."""
        if isinstance(s, tirx.While):
            return not self._uniform.diverges(s.condition)
        if attrs.ROUNDS in s.annotations:
            return False
        return not (self._uniform.diverges(s.extent) or self._uniform.diverges(s.min))

    def _touched(self, node: Any) -> Touched:
        reads = {self._root(x.source) for x in collect(node, tirx.TensorLoad)}
        writes = {self._root(x.buffer) for x in collect(node, tirx.BufferStore)}
        for one in collect(node, tirx.Call):
            op = op_of_call(one)
            rows = () if op is None else op.operands
            for position, arg in enumerate(one.args):
                if not isinstance(arg, tirx.TensorRegion):
                    continue
                access = rows[position].access if position < len(rows) else "update"
                if access != "write":
                    reads.add(self._root(arg.source))
                if access != "read":
                    writes.add(self._root(arg.source))
        return Touched(_shared(reads), _shared(writes))

    def _root(self, buffer: Any) -> Any:
        return self._roots.get(buffer, buffer)


def _shared(buffers: set[Any]) -> frozenset[Any]:
    return frozenset(b for b in buffers if str(b.scope()) in SHARED)


def _is_barrier(s: Any) -> bool:
    if not isinstance(s, tirx.Evaluate) or not isinstance(s.value, tirx.Call):
        return False
    op = op_of_call(s.value)
    whole = op is not None and op.orders in ("block", "cluster", "grid")
    return whole and not s.value.args and not constants_of(s.value)


def _barrier(span: Any) -> Any:
    return build.evaluate(call("sync_threads", [], span=span), span)
