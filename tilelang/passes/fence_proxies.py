"""What threads wrote to shared memory is fenced before the copy engine or the tensor cores read it.

Before: S[tx] = …; T.sync_threads(); if tx == 0: T.tma_store(S, …)
After:  S[tx] = …; T.fence_proxy_async(); T.sync_threads(); if tx == 0: T.tma_store(S, …)

They read through a way of their own (PTX ISA, async proxy), which ordinary writes reach only
through a fence in the thread that wrote. It goes before the next statement by which that thread
lets others, or the engine, go on. What `cp.async` writes is written once it is waited for; where an
mbarrier waits for it, whoever waits for that has the fence.
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.ir import build, tirx
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_ops import call, op_of_call
from tilelang.ir.visit import collect, map_launches, storage_roots, with_body
from tilelang.passes.context import PassContext

_ENGINES: Final = ("wgmma", "bulk")


def fence_proxies(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Insert the fences that ordinary writes need."""
    return with_body(func, map_launches(func.body, lambda launch: _fenced(launch, ctx)))


def _fenced(launch: Any, ctx: PassContext) -> Any:
    fences = _Fences(launch)
    if not fences.read:
        return launch
    new, _ = fences.statement(launch, False)
    ctx.count("proxy fences", fences.count)
    return new


class _Fences:
    """Walks a launch with whether this thread has written something since its last fence."""

    def __init__(self, launch: Any) -> None:
        self._roots = storage_roots(launch)
        self.count = 0
        # What engines read.
        self.read = {
            self._roots.get(arg.source, arg.source)
            for e in collect(launch, tirx.Call)
            for op in [op_of_call(e)]
            if op is not None and op.queue in _ENGINES
            for row, arg in zip(op.operands, e.args, strict=False)
            if row.space == "shared" and isinstance(arg, tirx.TensorRegion)
        }
        copies = [e for e in collect(launch, tirx.Call) if _name(e) == "cp_async"]
        # Waits after which data of cp.async are there.
        self._copied = any(
            self._roots.get(e.args[0].source, e.args[0].source) in self.read for e in copies
        )
        self._signalled = self._copied and any(
            _name(e) == "cp_async_barrier_noinc" for e in collect(launch, tirx.Call)
        )

    def statement(self, s: Any, dirty: bool) -> tuple[Any, bool]:
        """`s` with its fences, and whether a write is left unfenced behind it."""
        if isinstance(s, tirx.SeqStmt):
            parts = []
            for x in s.seq:
                new, dirty = self.statement(x, dirty)
                parts.append(new)
            return build.seq(parts, s.span), dirty
        if isinstance(s, tirx.AttrStmt):
            body, dirty = self.statement(s.body, dirty)
            return tirx.AttrStmt(s.node, s.attr_key, s.value, body, s.span), dirty
        if isinstance(s, (tirx.For, tirx.While)):
            return self._loop(s, dirty)
        if isinstance(s, tirx.IfThenElse):
            then, left = self.statement(s.then_case, dirty)
            other, right = s.else_case, dirty
            if other is not None:
                other, right = self.statement(other, dirty)
            return tirx.IfThenElse(s.condition, then, other, s.span), left or right
        return self._leaf(s, dirty)

    def _loop(self, s: Any, dirty: bool) -> tuple[Any, bool]:
        start = self.count
        _, left = self.statement(s.body, dirty)
        dirty = dirty or left
        self.count = start
        body, left = self.statement(s.body, dirty)
        is_for = isinstance(s, tirx.For)
        new = build.replace_body(s, body) if is_for else tirx.While(s.condition, body, s.span)
        return new, dirty or left

    def _leaf(self, s: Any, dirty: bool) -> tuple[Any, bool]:
        ops = [op for e in collect(s, tirx.Call) if (op := op_of_call(e)) is not None]
        if dirty and any(_lets_go_on(op) for op in ops):
            self.count += 1
            fence = build.evaluate(call("fence_proxy_async", [], span=s.span), s.span)
            return build.seq([fence, s], s.span), self._writes(s)
        if any(op.name == "fence_proxy_async" for op in ops):
            return s, False
        return s, dirty or self._writes(s)

    def _writes(self, s: Any) -> bool:
        """Whether it writes, as an ordinary thread does, what an engine reads."""
        written = [x.buffer for x in collect(s, tirx.BufferStore)]
        for e in collect(s, tirx.Call):
            op = op_of_call(e)
            if op is not None and op.waits == "cp_async" and self._copied:
                return True
            if op is not None and op.name == "mbarrier_wait_parity" and self._signalled:
                return True
            if op is not None and op.queue in ("mbarrier", "cp_async"):
                continue
            rows = () if op is None else op.operands
            for n, arg in enumerate(e.args):
                if isinstance(arg, tirx.TensorRegion):
                    access = rows[n].access if n < len(rows) else "update"
                    written += [] if access == "read" else [arg.source]
        return any(self._roots.get(b, b) in self.read for b in written)


def _name(e: Any) -> str:
    op = op_of_call(e)
    return "" if op is None else op.name


def _lets_go_on(op: DeviceOp) -> bool:
    """Whether others, or an engine, may go on with what was written before."""
    return (
        op.orders is not None
        or op.queue in _ENGINES
        or op.name in ("named_barrier_arrive", "wgmma_fence")
        or any(o.space == "barrier" and o.access == "update" for o in op.operands)
    )
