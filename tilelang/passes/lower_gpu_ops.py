"""Each tile operation becomes nests of parallel loops over tiles, and what one thread does.

Before: T.copy(A[by * 64, k * 32], A_s); T.gemm(A_s, B_s, C_l)
After:  for i0, i1 in T.Parallel(64, 32): A_s[i0, i1] = A[by * 64 + i0, k * 32 + i1]
        for k in unrolled(2): ldmatrix …; mma …
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call, op_of_call, region
from tilelang.ir.gpu_context import GpuContext, LaunchNeeds
from tilelang.ir.homes import FRAGMENT, SHARED
from tilelang.ir.spans import TirSpan
from tilelang.ir.tile_op import Refused, TileRegion, called_op
from tilelang.ir.visit import Rewriter, collect, with_body
from tilelang.layout.fragment import Fragment
from tilelang.layouts.machine import machine_of
from tilelang.nested import nested
from tilelang.ops import OP_BY_NAME
from tilelang.ops.atomic import VECTOR_ATOMICS, lower_vector_atomic
from tilelang.ops.copy import Copy
from tilelang.ops.gemm import BY_AUTHOR, Gemm
from tilelang.ops.reducer import lower_update
from tilelang.passes.context import PassContext
from tilelang.passes.safe_values import safe_values_of
from tilelang.passes.thread_scope import ThreadScope


def lower_gpu_ops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Lower every tile operation for threads that cooperate."""
    lowering = _Lower(func, ctx)
    lowered = lowering.any(func.body)
    lowered = build.seq([*lowering.needs.maps.values(), lowered], func.body.span)
    return with_body(func, lowered).with_attr(attrs.STAGE, "loops")


LAST_NAMED: Final = 15


def _named(e: Any) -> list[int]:
    """The number of the named barrier that a call uses."""
    op = op_of_call(e)
    if op is None or op.name not in ("sync_threads", "named_barrier_arrive") or not e.args:
        return []
    number = build.int_value(e.args[0])
    return [] if number is None else [number]


_OUT_OF_REGISTERS: Final = tuple((FRAGMENT, scope) for scope in SHARED)
# Memory of which each thread has its own: what works on it, every thread does for itself.
OWN: Final = ("local", "local.var")


class _Lower(ThreadScope):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._machine = machine_of(ctx.target)
        self._safe = safe_values_of(func)
        self._layout: Fragment | None = None
        self._async = False  # inside of what is copied asynchronously
        # Sums of WGMMA by the threads that have them.
        self._sums: dict[tuple[int, int], dict[Any, None]] = {}
        self.needs = LaunchNeeds(tuple(func.params))
        # Named barriers that are taken, and those of warp groups.
        self._named = {n for e in collect(func.body, tirx.Call) for n in _named(e)}
        self._barriers: dict[tuple[int, int], int] = {}
        self._allocations: Mapping[Any, Any] = {
            s.buffer: dict(s.annotations) for s in collect(func.body, tirx.AllocBuffer)
        }

    def attr(self, s: Any) -> Any:
        if s.attr_key == attrs.THREAD_EXTENT and not is_thread_extent(s.body):
            return self._innermost(s)
        if s.attr_key == attrs.ASYNC:
            self._async = True
            new = super().attr(s)
            self._async = False
            return new
        if s.attr_key != attrs.LOOP_LAYOUT:
            return super().attr(s)
        self._layout = attrs.unheld(s.node)
        body = self.any(s.body)
        self._layout = None
        return body

    def _innermost(self, s: Any) -> Any:
        """The body of a launch; bulk stores read shared memory, which ends with it."""
        self.needs.stores = False
        new = super().attr(s)
        if not self.needs.stores:
            return new
        waits = build.evaluate(call("bulk_wait", [], span=s.span, groups=0), s.span)
        body = build.seq([new.body, waits], s.span)
        return tirx.AttrStmt(new.node, new.attr_key, new.value, body, new.span)

    def evaluate(self, s: Any) -> Any:
        try:
            return self._lowered(s)
        except Refused as refused:
            span = refused.span or s.span
            self._ctx.report(refused.code, refused.message, span, **refused.details)
            return build.nothing(s.span)

    def _lowered(self, s: Any) -> Any:
        name = called_op(s)
        if name == "reducer_update":
            target, value = list(s.value.args)
            return lower_update(self._context(s.span), TileRegion.of(target), value)
        if name in VECTOR_ATOMICS:
            return lower_vector_atomic(self._context(s.span), s)
        op = OP_BY_NAME.get(name or "")
        if name == "wait_wgmma":
            return self._waited(s)
        if name == "sync_threads" and not s.value.args:
            return self._met(s)
        if name == "warpgroup_fence_operand":
            return self._pinned(s)
        if op is None:
            return super().evaluate(s)
        made = op.from_call(s.value)
        if isinstance(made, Copy):
            self._unheeded(made, s.span)
        if isinstance(made, Gemm) and made.instruction == BY_AUTHOR:
            home = self.homes.find(made.C.buffer)
            group = (self.threads.first, self.threads.count)
            if home is not None:
                self._sums.setdefault(group, {})[home.flat] = None
        with nested(f"T.{made.NAME}"):
            if any(region.scope in OWN for region in (*made.reads(), *made.writes())):
                return _by_each_thread(made.lower_cpu(self._context(s.span)))
            return made.lower(self._context(s.span))

    def _unheeded(self, copy: Copy, span: TirSpan) -> None:
        """What a copy asks for and does not get, and what it could ask for."""
        scopes = {copy.src.scope, copy.dst.scope}
        if self._ctx.capabilities.has_tma and "global" in scopes and scopes & set(SHARED):
            self._ctx.passed_over(
                "copy", "TMA", "T.copy is made by the threads; T.tma_copy is the engine's, and "
                "names the barrier to wait at", span,
            )  # fmt: skip
        if self._ctx.capabilities.has_tma and (copy.src.scope, copy.dst.scope) in _OUT_OF_REGISTERS:
            self._ctx.passed_over(
                "copy", "stmatrix", "each thread stores the elements that it holds: this version "
                "has no copies by stmatrix", span,
            )  # fmt: skip
        wish, target = copy.prefer_instruction, self._ctx.target
        if wish == "tma":
            tma = self._ctx.capabilities.has_tma
            self._ctx.report(
                "TL611",
                "this copy is asked for TMA, and its threads load and store the elements themselves"
                if tma else f"this copy is asked for TMA, which {target} does not have",
                span,
                label="not by TMA",
                help="`T.tma_copy` is copied by TMA; it needs a barrier of yours, "
                "`T.alloc_barrier`, to wait at"
                if tma else "leave out `prefer_instruction`; in a `T.Pipelined` loop copies run "
                "ahead by themselves",
            )  # fmt: skip
        elif wish == "cp_async" and not self._async:
            self._ctx.report(
                "TL611",
                "this copy is asked to be asynchronous, and is waited for at once: nothing runs "
                "beside it",
                span,
                label="not by cp.async",
                help="put it in a `T.Pipelined` loop, or use `T.async_copy` and `T.ptx_wait_group`",
            )
        if copy.eviction_policy not in (None, "evict_normal"):
            self._ctx.report(
                "TL611",
                f'eviction_policy="{copy.eviction_policy}" has no effect here: only what TMA '
                "copies has one",
                span,
                help="use `T.tma_copy`, or leave it out",
            )

    def _pinned(self, s: Any) -> Any:
        """Registers of a fragment or a private buffer, by their numbers."""
        operand, first = TileRegion.of(s.value.args[0]), build.int_value(s.value.args[1])
        home = self.homes.find(operand.buffer)
        flat = operand.buffer if home is None else home.flat
        total = build.int_value(flat.shape[0])
        count = s.value.attrs.get("num_regs")
        if first is None or total is None or len(flat.shape) != 1:
            raise Refused(
                "TL411", f"which registers of `{operand.buffer.name}` are meant is not known here",
                s.span, help="name a fragment, and constants for `offset` and `num_regs`",
            )  # fmt: skip
        size = total - first if count is None else int(count)
        pin = call("wgmma_fence_operand", [region(flat, first, size, s.span)], span=s.span)
        return build.evaluate(pin, s.span)

    def _met(self, s: Any) -> Any:
        """A barrier in the code of a warp group is one of its threads."""
        if self.threads.count == self.threads.whole:
            return s
        group = (self.threads.first, self.threads.count)
        free = (n for n in range(LAST_NAMED, 0, -1) if n not in self._named)
        name = self._barriers.get(group) or next(free, 0)
        self._barriers[group] = name
        self._named.add(name)
        numbers = [build.const(n, "int32", s.span) for n in (name, self.threads.count)]
        return build.evaluate(call("sync_threads", numbers, span=s.span), s.span)

    def _waited(self, s: Any) -> Any:
        """After the last products are waited for, their sums are read: not before."""
        if int(s.value.attrs["id"]):
            return s
        sums = self._sums.get((self.threads.first, self.threads.count), {})
        pins = []
        for flat in sums:
            count = build.int_value(flat.shape[0]) or 0
            pin = call("wgmma_fence_operand", [region(flat, 0, count, s.span)], span=s.span)
            pins.append(build.evaluate(pin, s.span))
        return build.seq([s, *pins], s.span)

    def _context(self, span: TirSpan) -> GpuContext:
        return GpuContext(
            self._ctx.target, span, self.prover.analyzer, self._allocations, self._safe,
            machine=self._machine, capabilities=self._ctx.capabilities,
            threads=self.threads.count, thread=self.threads.number(span), homes=self.homes,
            layout=self._layout, counters=dict(self.counters), bindings=dict(self.bindings),
            launch=self.needs, leader=self.leader, choices=self._ctx.choices,
        )  # fmt: skip


def is_thread_extent(s: Any) -> bool:
    """Whether `s` opens an axis of a launch."""
    return isinstance(s, tirx.AttrStmt) and str(s.attr_key) == attrs.THREAD_EXTENT


def _by_each_thread(stmt: tirx.Stmt) -> tirx.Stmt:
    """Loops that nobody shares."""
    return _Sequential().any(stmt)


class _Sequential(Rewriter):
    def for_(self, s: Any) -> Any:
        body = self.any(s.body)
        if int(s.kind) != int(tirx.ForKind.PARALLEL):
            return build.replace_body(s, body)
        if build.int_value(s.extent) is None:
            kind = "SERIAL"
        else:
            kind = "UNROLLED" if collect(body, tirx.For) else "VECTORIZED"
        return build.loop(s.loop_var, s.extent, body, kind=kind, low=s.min, span=s.span)
