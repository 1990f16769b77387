"""Accesses that may leave a global buffer are guarded: loads give the safe value, stores drop.

Before: A_s[i, j] = A[by * 64 + i, k * 32 + j]                       (A has M rows)
After:  A_s[i, j] = T.if_then_else(by * 64 + i < M, A[by * 64 + i, k * 32 + j], 0)

A bound that the prover can establish gets no guard. One that a GPU tests again in every round of a
sequential loop is TL603.
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.ir.text_expr import ExprText
from tilelang.ir.tile_op import TileRegion
from tilelang.ir.visit import collect, uses, with_body
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.safe_values import safe_values_of
from tilelang.passes.scoped import ScopedRewriter

# Constants of a kernel beyond this, such as masks, are no sizes of tiles; indices of 32 bits end
# here.
_LARGEST: Final = (1 << 31) - 1


def guard_bounds(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Guard every access of a global buffer that is not provably inside."""
    guard = _Guard(func, ctx)
    guarded = with_body(func, guard.any(func.body))
    ctx.count("bound proofs", guard.prover.queries)
    return guarded


class _Guard(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._safe = safe_values_of(func)
        self._rounds: list[tirx.Var] = []  # of the sequential loops around
        self._sizes = collect(func.body, tirx.IntImm) if ctx.choices.thorough else []

    def for_(self, s: Any) -> Any:
        sequential = int(s.kind) == int(tirx.ForKind.SERIAL)
        if sequential:
            self._rounds.append(s.loop_var)
        new = super().for_(s)
        if sequential:
            self._rounds.pop()
        return new

    def load(self, e: Any) -> Any:
        new = super().load(e)
        condition = self._inside(e.source, list(e.indices), e.span)
        if condition is None:
            return new
        safe = self._safe.get(e.source)
        if safe is None:
            safe = build.const(0, build.dtype_of(new), e.span)
        return build.select(condition, new, safe, lazy=True, span=e.span)

    def store(self, s: Any) -> Any:
        condition = self._inside(s.buffer, list(s.indices), s.span)
        if condition is None:
            return super().store(s)
        with self.prover.under(condition):
            stored = super().store(s)
        return tirx.IfThenElse(condition, stored, None, s.span)

    def evaluate(self, s: Any) -> Any:
        """A call for its effect on elements: skipped when any of them does not exist."""
        condition = self._operands_inside(s.value)
        if condition is None:
            return super().evaluate(s)
        with self.prover.under(condition):
            kept = super().evaluate(s)
        return tirx.IfThenElse(condition, kept, None, s.span)

    def call(self, e: Any) -> Any:
        """A call whose value is used: 0 when its element does not exist."""
        condition = self._operands_inside(e)
        if condition is None:
            return super().call(e)
        with self.prover.under(condition):
            kept = super().call(e)
        zero = build.const(0, build.dtype_of(kept), e.span)
        return build.select(condition, kept, zero, lazy=True, span=e.span)

    def _operands_inside(self, call: Any) -> tirx.Expr | None:
        if not isinstance(call, tirx.Call):
            return None
        conditions = []
        for arg in call.args:
            if not isinstance(arg, tirx.TensorRegion):
                continue
            region = TileRegion.of(arg)
            if not all(build.is_int(e, 1) for e in region.extents):
                continue
            found = self._inside(region.buffer, list(region.mins), call.span)
            if found is not None:
                conditions.append(found)
        return build.all_of(conditions, call.span)

    def _inside(
        self, buffer: tirx.Buffer, indices: list[tirx.Expr], span: TirSpan
    ) -> tirx.Expr | None:
        """What must be tested for `indices` to lie in `buffer`; None when nothing."""
        if str(buffer.scope()) != "global":
            return None
        conditions = []
        for index, extent in zip(indices, list(buffer.shape), strict=True):
            if isinstance(index, tirx.Ramp):
                continue  # the vectorised access of a user's own vector code
            dtype = build.dtype_of(index)
            if build.dtype_of(extent) != dtype:
                extent = build.cast(extent, "int64")
                index, dtype = build.cast(index, "int64"), "int64"
            for test in (
                tirx.GE(index, build.const(0, dtype, span), span),
                tirx.LT(index, extent, span),
            ):
                if not self.prover.proves(test):
                    conditions.append(test)
                    self._again(buffer, extent, test, span)
                    self._kept(buffer, extent, test, span)
        if conditions:
            self._ctx.count("guards", len(conditions))
        return build.all_of(conditions, span)

    def _kept(self, buffer: tirx.Buffer, extent: tirx.Expr, test: Any, span: TirSpan) -> None:
        """Tell of a guard: what could not be proved, and which promise would prove it."""
        if self._ctx.choices.thorough:
            with nested("explain"):
                self._explain(buffer, extent, test, span)

    def _explain(self, buffer: tirx.Buffer, extent: tirx.Expr, test: Any, span: TirSpan) -> None:
        shown = ExprText().expr(test)
        promise = self._promise(extent, test)
        if promise is not None:
            why = f"with `T.assume({promise})` it would be proved"
        elif (size := self._ragged(extent, test)) is not None:
            why = f"{build.int_value(extent)} is no multiple of {size}"
        else:
            why = "it could not be proved"
        self._ctx.note("guard", f"`{buffer.name}` is tested: `{shown}`", span, why)

    def _ragged(self, extent: tirx.Expr, test: Any) -> int | None:
        """The size of a tile whose last one reaches beyond a constant extent, and only there."""
        number = build.int_value(extent)
        if number is None or not isinstance(test, tirx.LT):
            return None
        own = {build.int_value(e) for e in collect(test.a, tirx.IntImm)}
        sizes = {n for e in self._sizes if (n := build.int_value(e)) is not None}
        whole = {n: -(-number // n) * n for n in sizes if n > 1 and number % n}
        whole = {n: end for n, end in whole.items() if end <= _LARGEST}
        for size in sorted(whole, key=lambda n: (whole[n], n not in own, n)):
            bound = build.const(whole[size], build.dtype_of(test.a))
            if self.prover.proves(tirx.LT(test.a, bound)):
                return size
        return None

    def _promise(self, extent: tirx.Expr, test: Any) -> str | None:
        """The weakest promise on the extent that proves a test, if one of its sizes does."""
        if not isinstance(extent, tirx.Var):
            return None
        dtype = build.dtype_of(extent)
        found = {build.int_value(e) or 0 for e in collect(test, tirx.IntImm)}
        found |= {build.int_value(e) or 0 for e in self._sizes}
        for size in sorted(n for n in found if 1 < n <= _LARGEST):
            rest = tirx.FloorMod(extent, build.const(size, dtype))
            promised = tirx.EQ(rest, build.const(0, dtype))
            with self.prover.under(promised):
                if self.prover.proves(test):
                    return f"{extent.name} % {size} == 0"
        return None

    def _again(self, buffer: tirx.Buffer, extent: tirx.Expr, test: Any, span: TirSpan) -> None:
        """Say that a test comes back in every round of a loop."""
        if not self._ctx.capabilities.threads_cooperate:
            return  # `unswitch_guards` takes it out of all rounds but the last
        again = [v for v in self._rounds if uses(test, [v])]
        if not again:
            return
        number, loop = build.int_value(extent), str(again[-1].name)
        size = extent.name if isinstance(extent, tirx.Var) else number
        self._ctx.report(
            "TL603",
            f"every round of the loop over `{loop}` tests whether it is inside `{buffer.name}`"
            + ("" if size is None else f", whose extent is {size}"),
            span,
            label="tested again and again",
            help="make the extent a multiple of the tile"
            if number is not None
            else f"if it is a multiple of the tile, say so: `T.assume({size or 'n'} % … == 0)`",
        )
