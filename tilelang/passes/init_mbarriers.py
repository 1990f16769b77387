"""The mbarriers of a kernel are initialised once, before anything uses them.

Before: full = T.alloc_barrier([1, 1]); …
After:  full (2 mbarriers in shared memory), before everything else
        if tx == 0: T.mbarrier_init(full[0], 1); T.mbarrier_init(full[1], 1); fence
        T.sync_threads(); …
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call, region
from tilelang.ir.spans import TirSpan
from tilelang.ir.visit import collect, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.thread_scope import ThreadScope, within

BARRIERS: Final = "shared.barrier"
CLUSTER_BARRIERS: Final = "shared.cluster_barrier"
COUNTS: Final = attrs.ALLOC_PREFIX + "arrive_counts"


def init_mbarriers(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Initialise what `T.alloc_barrier` allocates."""
    for s in collect(func.body, tirx.AllocBuffer):
        if str(s.buffer.scope()) == CLUSTER_BARRIERS:
            ctx.report(
                "TL401", f"`T.alloc_cluster_barrier` of `{s.buffer.name}` is not available yet",
                s.span, label="no code is generated for barriers between blocks",
                help="use `T.alloc_barrier` within each block",
            )  # fmt: skip
    return with_body(func, _Init(func).any(func.body))


class _Init(ThreadScope):
    def attr(self, s: Any) -> Any:
        if s.attr_key != attrs.THREAD_EXTENT or _is_axis(s.body):
            return super().attr(s)
        found = [x for x in collect(s.body, tirx.AllocBuffer) if _is_barrier(x)]
        if not found:
            return super().attr(s)
        new = super().attr(s)
        # The axis of this very attribute counts too.
        outer = self.threads
        self.threads = within(s, outer)
        body = build.seq([*found, *self._start(found, s.span), new.body], s.span)
        self.threads = outer
        return tirx.AttrStmt(new.node, new.attr_key, new.value, body, new.span)

    def alloc(self, s: Any) -> Any:
        return build.nothing(s.span) if _is_barrier(s) else super().alloc(s)

    def _start(self, found: list[Any], span: TirSpan) -> list[Any]:
        first: list[Any] = []
        for alloc in found:
            counts = [int(n) for n in alloc.annotations[COUNTS]]
            for n, count in enumerate(counts):
                arrivals = build.const(count, "int32", alloc.span)
                operands = [region(alloc.buffer, n, 1, alloc.span), arrivals]
                made = call("mbarrier_init", operands, span=alloc.span)
                first.append(build.evaluate(made, alloc.span))
        first.append(build.evaluate(call("fence_mbarrier_init", [], span=span), span))
        zero = build.const(0, "int32", span)
        alone = tirx.EQ(self.threads.number(span), zero, span)
        body = build.seq(first, span)
        start = body if self.threads.count == 1 else tirx.IfThenElse(alone, body, None, span)
        return [start, build.evaluate(call("sync_threads", [], span=span), span)]


def _is_axis(s: Any) -> bool:
    return isinstance(s, tirx.AttrStmt) and str(s.attr_key) == attrs.THREAD_EXTENT


def _is_barrier(s: Any) -> bool:
    return str(s.buffer.scope()) == BARRIERS and COUNTS in s.annotations
