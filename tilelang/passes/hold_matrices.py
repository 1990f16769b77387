"""Sums that only products, fills and copies look at stay matrices of their simdgroups.

Before: T.clear(C_l); for k: T.gemm(A_s, B_s, C_l); T.copy(C_l, C[by * 64, bx * 64])
After:  simdgroup_fill(C_l_matrices[i], 0)
        for k: a[i] = simdgroup_load(A_s[…]); …; simdgroup_multiply(C_l_matrices[i, j], a[i], b[j])
        simdgroup_store(C_l_shared[…], C_l_matrices[i, j]); T.copy(C_l_shared, C[by * 64, bx * 64])

Nobody can say which lane holds which element of a matrix. A fragment that anything else touches
lives in registers, and each product moves it to matrices and back through shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.gpu_context import GpuContext, is_whole
from tilelang.ir.homes import FRAGMENT, shape_of
from tilelang.ir.tile_op import TileOp, TileRegion, called_op
from tilelang.ir.visit import collect, storage_roots, with_body
from tilelang.layouts.machine import machine_of
from tilelang.ops import OP_BY_NAME
from tilelang.ops.copy import Copy
from tilelang.ops.fill import Fill
from tilelang.ops.gemm import Gemm
from tilelang.ops.gemm_simdgroup import (
    OF_MATRICES,
    MatrixPlan,
    can_be_strips,
    cleared,
    filled,
    fits,
    matrices,
    matrix_plan,
    multiplied,
    staged,
    stored,
    stored_in_strips,
)
from tilelang.passes.context import PassContext
from tilelang.passes.safe_values import safe_values_of
from tilelang.passes.thread_scope import ThreadScope

_RANK: Final = 2


def hold_matrices(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Keep sums in matrices where every use allows it."""
    return with_body(func, _Hold(func, ctx, _uses(func.body)).any(func.body))


class _Hold(ThreadScope):
    def __init__(self, func: Any, ctx: PassContext, uses: dict[Any, list[TileOp]]) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._machine = machine_of(ctx.target)
        self._safe = safe_values_of(func)
        self._uses = uses
        self._held: dict[Any, tuple[Any, MatrixPlan]] = {}

    def alloc(self, s: Any) -> Any:
        plan = self._plan(s.buffer)
        if plan is None:
            return s
        ctx = self._context(s.span)
        name = f"{s.buffer.name}_matrices"
        held = matrices(ctx, name, plan.count, str(s.buffer.dtype))
        self._held[s.buffer] = (held, plan)
        self._ctx.count("fragments held as matrices", 1)
        return build.allocate(held, None, s.span)

    def _plan(self, buffer: Any) -> MatrixPlan | None:
        """How all products with these sums share them out, if they agree."""
        products = [op for op in self._uses.get(buffer, ()) if isinstance(op, Gemm)]
        if not products or self.threads.count != self.threads.whole:
            return None
        capabilities = self._ctx.capabilities
        plans = [matrix_plan(op, self.threads.count, capabilities) for op in products]
        first = plans[0]
        if first is None or not all(p is not None and p.grid == first.grid for p in plans):
            return None
        copies = [op for op in self._uses.get(buffer, ()) if isinstance(op, Copy)]
        whole = fits(first, str(buffer.dtype), capabilities)
        return first if whole or all(can_be_strips(first, op.dst) for op in copies) else None

    def attr(self, s: Any) -> Any:
        # The layout of a loop over registers says nothing of matrices.
        if s.attr_key == attrs.LOOP_LAYOUT and self._op_on_held(s.body) is not None:
            return self.any(s.body)
        return super().attr(s)

    def evaluate(self, s: Any) -> Any:
        self._explain(s)
        op = self._op_on_held(s)
        if op is None:
            return super().evaluate(s)
        ctx = self._context(s.span)
        match op:
            case Fill():
                held, plan = self._held[op.dst.buffer]
                assert not isinstance(op.value, TileRegion)
                return filled(ctx, held, plan.count, op.value)
            case Gemm():
                held, _ = self._held[op.C.buffer]
                plan_here = matrix_plan(op, self.threads.count, self._ctx.capabilities)
                assert plan_here is not None
                clear = cleared(op, ctx, held, plan_here.count)
                why = f"its sums stay in matrices: nothing else touches `{op.C.buffer.name}`"
                self._ctx.note("gemm", plan_here.said, s.span, why)
                return build.seq([clear, multiplied(op, ctx, plan_here, held)], s.span)
            case Copy():
                return self._copied(s, ctx, *self._held[op.src.buffer])
        return super().evaluate(s)

    def _copied(self, s: Any, ctx: GpuContext, held: Any, plan: MatrixPlan) -> Any:
        """The sums laid out in shared memory, whole or in strips, and copied from there."""
        source = TileRegion.of(s.value.args[0]).buffer
        name = f"{source.name}_shared"
        if not fits(plan, str(source.dtype), self._ctx.capabilities):
            return stored_in_strips(ctx, plan, held, TileRegion.of(s.value.args[1]), name)
        allocate, stage = staged(ctx, name, plan.m, plan.n, str(source.dtype))
        tile = TileRegion.of(stage.buffer).expr()
        said = dict(s.value.attrs or {})
        copy = build.call("copy", [tile, *list(s.value.args)[1:]], attrs=said, span=s.span)
        return build.seq(
            [allocate, stored(ctx, plan, held, stage), build.evaluate(copy, s.span)], s.span
        )

    def _explain(self, s: Any) -> None:
        """Say of a product that matrices cannot do what would be legal."""
        op, machine = _operation(s), self._ctx.capabilities
        if not isinstance(op, Gemm):
            return
        plan = matrix_plan(op, self.threads.count, machine)
        if plan is None:
            why, help = "whose matrices do not cover it", OF_MATRICES
        elif op.C.buffer not in self._held and not fits(plan, op.C.dtype, machine):
            why = "since its sums, which others look at, have no room in shared memory"
            help = "make the tile of sums smaller, or copy it out before anything else reads it"
        else:
            return
        self._ctx.report(
            "TL606",
            f"`T.gemm` into `{op.C.buffer.name}` runs on the ordinary units of "
            f"{self._ctx.target}, {why}",
            s.span, help=help,
        )  # fmt: skip

    def _op_on_held(self, s: Any) -> TileOp | None:
        op = _operation(s)
        found = None if op is None else _sums(op)
        return op if found is not None and found.buffer in self._held else None

    def _context(self, span: Any) -> GpuContext:
        return GpuContext(
            self._ctx.target, span, self.prover.analyzer, {}, self._safe,
            machine=self._machine, capabilities=self._ctx.capabilities,
            threads=self.threads.count, thread=self.threads.number(span), homes=self.homes,
            counters=dict(self.counters), bindings=dict(self.bindings),
        )  # fmt: skip


def _operation(s: Any) -> TileOp | None:
    kind = OP_BY_NAME.get(called_op(s) or "")
    return kind.from_call(s.value) if kind in (Fill, Gemm, Copy) else None


def _sums(op: TileOp) -> TileRegion | None:
    """The operand of an operation that may be matrices."""
    match op:
        case Fill():
            return None if isinstance(op.value, TileRegion) else op.dst
        case Gemm():
            return op.C
        case Copy():
            return op.src
    return None


def _uses(body: Any) -> dict[Any, list[TileOp]]:
    """The fragments that nothing else touches, with the operations that do."""
    allocated = [s.buffer for s in collect(body, tirx.AllocBuffer)]
    wanted = [b for b in allocated if str(b.scope()) == FRAGMENT and len(shape_of(b)) == _RANK]
    seen = _mentions(body, wanted)
    found: dict[Any, list[TileOp]] = {buffer: [] for buffer in wanted}
    for s in collect(body, tirx.Evaluate):
        op = _operation(s)
        sums = None if op is None else _sums(op)
        if op is not None and sums is not None and sums.buffer in found and is_whole(sums):
            found[sums.buffer].append(op)
    return {buffer: ops for buffer, ops in found.items() if len(ops) == seen[buffer]}


def _mentions(body: Any, wanted: Sequence[Any]) -> Counter[Any]:
    """How often each buffer is mentioned at all."""
    found: Counter[Any] = Counter()
    for load in collect(body, tirx.TensorLoad):
        found[load.source] += 1
    for store in collect(body, tirx.BufferStore):
        found[store.buffer] += 1
    for call in collect(body, tirx.Call):
        for arg in call.args:
            if isinstance(arg, tirx.TensorRegion):
                found[arg.source] += 1
            elif tirx.is_buffer_var(arg):
                found[arg] += 1
    for root in storage_roots(body).values():
        found[root] += 1
    return Counter({buffer: found[buffer] for buffer in wanted})
