"""Accesses that may leave a global buffer are guarded: loads give the safe value, stores drop.

Before: A_s[i, j] = A[by * 64 + i, k * 32 + j]                       (A has M rows)
After:  A_s[i, j] = T.if_then_else(by * 64 + i < M, A[by * 64 + i, k * 32 + j], 0)

A bound that the prover can establish gets no guard. One that a GPU tests again in every round of a
sequential loop is TL603.

An index that is read from a tensor in turn is only known where that read is inside, too: what it
names is not accessed elsewhere.

Before: B[i] = A[I[bx * 64 + i]]                                     (A has N, I has M elements)
After:  B[i] = T.if_then_else(bx * 64 + i < M and I[…] >= 0 and I[…] < N, A[I[…]], 0)
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.ir.text_expr import ExprText
from tilelang.ir.tile_op import TileRegion
from tilelang.ir.visit import collect, uses, with_body
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.safe_values import safe_values_of
from tilelang.passes.scoped import ScopedRewriter, is_lazy_select

# Constants of a kernel beyond this, such as masks, are no sizes of tiles; indices of 32 bits end
# here.
_LARGEST: Final = (1 << 31) - 1


def guard_bounds(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Guard every access of a global buffer that is not provably inside."""
    guard = _Guard(func, ctx)
    guarded = with_body(func, guard.any(func.body))
    ctx.count("bound proofs", guard.prover.queries)
    return guarded


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition as a fact for the prover, and as it is evaluated: no load before its own test."""

    known: tirx.Expr
    asked: tirx.Expr


class _Guard(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._safe = safe_values_of(func)
        self._rounds: list[tirx.Var] = []  # of the sequential loops around
        self._is_quiet = False
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
        test = self._inside(e.source, list(e.indices), e.span)
        if test is None:
            return super().load(e)
        with self.prover.under(test.known):
            new = super().load(e)
        safe = self._safe.get(e.source)
        if safe is None:
            safe = build.const(0, build.dtype_of(new), e.span)
        return build.select(test.asked, new, safe, lazy=True, span=e.span)

    def store(self, s: Any) -> Any:
        test = self._inside(s.buffer, list(s.indices), s.span)
        if test is None:
            return super().store(s)
        with self.prover.under(test.known):
            stored = super().store(s)
        return tirx.IfThenElse(test.asked, stored, None, s.span)

    def evaluate(self, s: Any) -> Any:
        """A call for its effect on elements: skipped when any of them does not exist."""
        test = self._operands_inside(s.value)
        if test is None:
            return super().evaluate(s)
        with self.prover.under(test.known):
            kept = super().evaluate(s)
        return tirx.IfThenElse(test.asked, kept, None, s.span)

    def call(self, e: Any) -> Any:
        """A call whose value is used: 0 when its element does not exist."""
        test = self._operands_inside(e)
        if test is None:
            return super().call(e)
        with self.prover.under(test.known):
            kept = super().call(e)
        zero = build.const(0, build.dtype_of(kept), e.span)
        return build.select(test.asked, kept, zero, lazy=True, span=e.span)

    def _operands_inside(self, call: Any) -> _Test | None:
        if not isinstance(call, tirx.Call):
            return None
        tests = []
        for arg in call.args:
            if not isinstance(arg, tirx.TensorRegion):
                continue
            region = TileRegion.of(arg)
            if not all(build.is_int(e, 1) for e in region.extents):
                continue
            found = self._inside(region.buffer, list(region.mins), call.span)
            if found is not None:
                tests.append(found)
        known = build.all_of((t.known for t in tests), call.span)
        asked = build.all_of((t.asked for t in tests), call.span)
        return None if known is None or asked is None else _Test(known, asked)

    def _inside(self, buffer: tirx.Buffer, indices: list[tirx.Expr], span: TirSpan) -> _Test | None:
        """What must be tested for `indices` to lie in `buffer`; None when nothing."""
        if str(buffer.scope()) != "global":
            return None
        loads = [load for index in indices for load in _certain_loads(index)]
        found = [self._inside(load.source, list(load.indices), load.span) for load in loads]
        read = [t for t in found if t is not None]
        with ExitStack() as facts:
            for test in read:
                facts.enter_context(self.prover.under(test.known))
            own = self._tests(buffer, indices, span)
        known = [*(t.known for t in read), *([] if own is None else [own])]
        asked = build.all_of((t.asked for t in read), span)
        if asked is not None and own is not None:
            # A CPU evaluates both sides of an `and`.
            asked = (
                tirx.And(asked, own, span) if self._ctx.capabilities.threads_cooperate
                else build.select(asked, own, build.const(False, "bool", span), True, span)
            )  # fmt: skip
        asked = own if asked is None else asked
        all_known = build.all_of(known, span)
        return None if asked is None or all_known is None else _Test(all_known, asked)

    def _tests(
        self, buffer: tirx.Buffer, indices: list[tirx.Expr], span: TirSpan
    ) -> tirx.Expr | None:
        conditions = []
        for index, extent in zip(indices, list(buffer.shape), strict=True):
            if isinstance(index, tirx.Ramp):
                continue  # the vectorised access of a user's own vector code
            index = self._quietly(index)
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
                    if not self._is_quiet:
                        self._again(buffer, extent, test, span)
                        self._kept(buffer, extent, test, span)
        if conditions and not self._is_quiet:
            self._ctx.count("guards", len(conditions))
        return build.all_of(conditions, span)

    def _quietly(self, index: tirx.Expr) -> tirx.Expr:
        """An index whose loads are guarded, of which is told where the index itself is."""
        if not collect(index, tirx.TensorLoad):
            return index
        told, self._is_quiet = self._is_quiet, True
        guarded = self.any(index)
        self._is_quiet = told
        return guarded

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
            help=_how_to_prove(test, size, number),
        )


def _how_to_prove(test: Any, size: object, number: int | None) -> str:
    if collect(test, tirx.TensorLoad):
        return "name the index first (`row = …`), and say what holds: `T.assume(row < …)`"
    if number is not None:
        return "make the extent a multiple of the tile"
    return f"if it is a multiple of the tile, say so: `T.assume({size or 'n'} % … == 0)`"


def _certain_loads(index: tirx.Expr) -> list[Any]:
    """The loads of tensors that evaluating an index does in any case, without those that the
    indices of others do."""
    loads = [x for x in collect(index, tirx.TensorLoad) if str(x.source.scope()) == "global"]
    selects = [call for call in collect(index, tirx.Call) if is_lazy_select(call)]
    within = [part for call in selects for part in list(call.args)[1:]]
    within += [part for load in loads for part in load.indices]
    inner = [load for part in within for load in collect(part, tirx.TensorLoad)]
    return [load for load in loads if not any(load.same_as(x) for x in inner)]
