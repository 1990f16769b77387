"""Do all threads that an operation is shared out among get to it?

    if tx < 64: T.copy(a, C)      those 64 share the tile: `distribute_loops` counts only them
    if tx < 64: T.gemm(a, b, c)   refused: a product is shared out among all threads
    if tx % 2:  T.copy(a, C)      refused: the threads that come here are no neighbours

An operation whose threads are not all there would leave a part of its tile untouched.
"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.uniform import Uniformity
from tilelang.ir import tirx
from tilelang.ir.homes import FRAGMENT, REDUCER
from tilelang.ir.index_values import Opaque, evaluate
from tilelang.ir.nests import opens_nest
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.tile_op import NestOp, called_op
from tilelang.ir.visit import collect, statements, storage_roots
from tilelang.layout.lazy import np
from tilelang.ops import OP_BY_NAME
from tilelang.passes.context import PassContext
from tilelang.passes.thread_scope import ThreadScope, neighbours, written_at
from tilelang_diagnostics import raise_for
from tilelang_diagnostics.model import Label

_EACH_ITS_OWN = ("local", "local.var")
# What asks for its one thread itself.
_BY_ONE_THREAD = ("tma_copy",)


def refuse_divergent_ops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Report TL413 for each operation of the block that only some of its threads reach."""
    _Check(func, ctx).any(func.body)
    # What follows counts on it.
    raise_for(ctx.remarks)
    return func


class _Check(ThreadScope):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._uniform = Uniformity(func.body)
        self._roots = storage_roots(func.body)
        # Places that threads pass a different number of times, or where some of them end.
        self._uneven: tuple[TirSpan, ...] = ()

    def for_(self, s: Any) -> Any:
        if opens_nest(s):
            self._check("Parallel", s, s.body, shares=True)
            return s
        varies = self._uniform.diverges(s.min) or self._uniform.diverges(s.extent)
        return self._loop(s, super().for_, s.extent.span or s.span if varies else None)

    def while_(self, s: Any) -> Any:
        varies = self._uniform.diverges(s.condition)
        return self._loop(s, super().while_, s.condition.span or s.span if varies else None)

    def _loop(self, s: Any, visit: Any, uneven: TirSpan) -> Any:
        outer = self._uneven
        left = uneven if uneven is not None else self._leaves(s.body, None, True)
        if left is not None:
            self._uneven = (*outer, left)
        new = visit(s)
        ended = self._leaves(s.body, None, False)
        self._uneven = outer if ended is None else (*outer, ended)
        return new

    def if_(self, s: Any) -> Any:
        new = super().if_(s)
        ended = self._leaves(s, None, False)
        if ended is not None:
            self._uneven = (*self._uneven, ended)
        return new

    def _leaves(self, s: Any, some: TirSpan, loop: bool) -> TirSpan:
        """The condition under which only some threads end, or leave the loop with the body `s`;
        `some`: that of a branch around which differs between threads."""
        for one in statements(s):
            found = None
            if isinstance(one, tirx.IfThenElse):
                inner = some
                if inner is None and self._uniform.diverges(one.condition):
                    inner = one.condition.span or one.span
                found = self._leaves(one.then_case, inner, loop)
                if found is None and one.else_case is not None:
                    found = self._leaves(one.else_case, inner, loop)
            elif isinstance(one, (tirx.For, tirx.While)):
                found = self._leaves(one.body, some, False)
            elif isinstance(one, tirx.AttrStmt):
                found = self._leaves(one.body, some, loop)
            elif isinstance(one, (tirx.Break, tirx.Continue)):
                found = some if loop else None
            elif called_op(one) == "thread_return":
                found = some
            if found is not None:
                return found
        return None

    def evaluate(self, s: Any) -> Any:
        name = called_op(s) or ""
        op = OP_BY_NAME.get(name)
        if op is None or name in _BY_ONE_THREAD:
            return s
        made = op.from_call(s.value)
        touched = (*made.reads(), *made.writes())
        if not any(region.scope in _EACH_ITS_OWN for region in touched):
            self._check(name, s, s.value, shares=issubclass(op, NestOp))
        return s

    def _check(self, name: str, s: Any, touched: Any, shares: bool) -> None:
        """`s` is for all threads; one that `shares` may be for some neighbours."""
        if self._uneven:
            self._refuse(name, s, "which of them come here is not known", self._uneven[-1])
            return
        mask = np.ones(self.threads.count, dtype=bool)
        values = self.threads.values()
        where: TirSpan = None
        for condition in self.conditions:
            if not self._uniform.diverges(condition):
                continue
            place = written_at(condition)
            try:
                found = np.asarray(evaluate(condition, values, self.bindings), dtype=bool)
            except Opaque:
                self._refuse(name, s, "which of them come here is not known", place)
                return
            mask &= np.broadcast_to(found, mask.shape)
            where = place if not found.all() else where
        if mask.all() or not mask.any():
            return
        part = neighbours(mask)
        if part is None:
            self._refuse(name, s, "those that come here are not neighbours", where)
            return
        first = part[0] + self.threads.first
        here = f"only threads {first} … {first + part[1] - 1} come here"
        here = here if part[1] > 1 else f"only thread {first} comes here"
        held = self._held(touched)
        if not shares:
            self._refuse(name, s, here, where)
        elif held is not None:
            self._refuse(name, s, f"they hold `{held}` together, and {here}", where)

    def _held(self, touched: Any) -> str | None:
        """A tile in `touched` that lies in registers of all threads."""
        buffers = [x.buffer for x in collect(touched, tirx.BufferStore)]
        buffers += [x.source for x in collect(touched, tirx.TensorLoad)]
        buffers += [x.source for x in collect(touched, tirx.TensorRegion)]
        for buffer in buffers:
            if str(self._roots.get(buffer, buffer).scope()) in (FRAGMENT, REDUCER):
                return str(buffer.name)
        return None

    def _refuse(self, name: str, s: Any, why: str, where: TirSpan) -> None:
        place = from_tir(where)
        joint = ", " if why.startswith("they") else ", and "
        self._ctx.report(
            "TL413", f"`T.{name}` is shared out among all threads{joint}{why}",
            s.span, label="for all threads",
            labels=() if place is None else (Label(place, "differs between threads"),),
            help="move it out of the condition; what one warp group does alone stands in "
            "`with T.ws(…)`",
        )  # fmt: skip
