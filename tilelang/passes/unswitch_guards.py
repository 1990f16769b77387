"""A parallel nest whose guards hold for a whole tile runs without them there.

Before: for i, j in T.Parallel(64, 32):
            A_s[i, j] = T.if_then_else(by * 64 + i < M, A[by * 64 + i, j], 0)
After:  if by * 64 + 63 < M:
            for i, j in T.Parallel(64, 32): A_s[i, j] = A[by * 64 + i, j]
        else:
            (the nest as it was)

Only edge tiles then pay for guards, and the loop of inner tiles vectorises. The same goes for
masks in the author's own conditions.
"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.ranges import Prover, conjuncts, is_integer, linear_step
from tilelang.ir import build, tirx
from tilelang.ir.visit import Rewriter, collect, contains, substitute, uses, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.scoped import ScopedRewriter, is_lazy_select
from tilelang.passes.serialize_dependent import parallel_nest_of

# The nest is written twice: not worth it for bodies of more expressions than this.
_LARGEST_BODY = 600

# More than this many different guards are unlikely to hold together.
_MOST_GUARDS = 8


def unswitch_guards(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Version each parallel nest by the guards that can be decided for all its iterations."""
    return with_body(func, _Unswitch(func, ctx).any(func.body))


class _Unswitch(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx

    def for_(self, s: Any) -> Any:
        nest = parallel_nest_of(s)
        if not nest:
            return super().for_(s)
        hoisted = _hoistable(self.prover, nest)
        if not hoisted or len(collect(nest[-1].body, tirx.Expr)) > _LARGEST_BODY:
            return s
        condition = build.all_of([above for _, above in hoisted], s.span)
        assert condition is not None
        fast = _Assume([guard for guard, _ in hoisted]).any(s)
        self._ctx.count("unswitched nests")
        return tirx.IfThenElse(condition, fast, s, s.span)


def _hoistable(prover: Prover, nest: list[Any]) -> list[tuple[tirx.Expr, tirx.Expr]]:
    """(guard, condition under which it holds throughout the nest) of each guard that has one."""
    body = nest[-1].body
    inner = [s.var for s in collect(body, tirx.Bind)]
    inner += [s.loop_var for s in collect(body, tirx.For)]
    found: list[tuple[tirx.Expr, tirx.Expr]] = []
    for guard in _guards(body):
        if any(tirx.structural_equal(guard, known) for known, _ in found):
            continue
        if uses(guard, inner) or contains(guard, _may_not_move):
            continue
        above = _throughout(prover, guard, nest)
        if above is not None and prover.decides(above) is not False:
            found.append((guard, above))
    return found if len(found) <= _MOST_GUARDS else []


def _guards(body: tirx.Stmt) -> list[tirx.Expr]:
    conditions = [s.condition for s in collect(body, tirx.IfThenElse)]
    conditions += [c.args[0] for c in collect(body, tirx.Call) if is_lazy_select(c)]
    return [part for condition in conditions for part in conjuncts(condition)]


def _throughout(prover: Prover, guard: tirx.Expr, nest: list[Any]) -> tirx.Expr | None:
    """`guard` with each loop variable at its worst; None when the worst is not known."""
    if not isinstance(guard, (tirx.LT, tirx.LE, tirx.GT, tirx.GE)) or not is_integer(guard.a):
        return None
    grows_bad = isinstance(guard, (tirx.LT, tirx.LE))
    gap = tirx.Sub(guard.a, guard.b)
    worst = {}
    for loop in nest:
        step = linear_step(prover.analyzer, gap, loop.loop_var)
        if step is None:
            return None
        if step == 0:
            continue
        last = tirx.Sub(tirx.Add(loop.min, loop.extent), build.const(1, build.dtype_of(loop.min)))
        worst[loop.loop_var] = prover.simplify(last) if (step > 0) == grows_bad else loop.min
    left, right = substitute(guard.a, worst), substitute(guard.b, worst)
    return type(guard)(prover.simplify(left), prover.simplify(right), guard.span)


class _Assume(Rewriter):
    """Takes certain conditions as true."""

    def __init__(self, known: list[tirx.Expr]) -> None:
        self._known = known

    def if_(self, s: Any) -> Any:
        rest = self._remaining(s.condition)
        if rest is None:
            return self.any(s.then_case)
        orelse = None if s.else_case is None else self.any(s.else_case)
        return tirx.IfThenElse(self.any(rest), self.any(s.then_case), orelse, s.span)

    def call(self, e: Any) -> Any:
        if not is_lazy_select(e):
            return super().call(e)
        condition, true, false = list(e.args)
        rest = self._remaining(condition)
        if rest is None:
            return self.any(true)
        args = [self.any(rest), self.any(true), self.any(false)]
        return tirx.Call(e.op, args, span=e.span, ret_ty=e.ty)

    def _remaining(self, condition: tirx.Expr) -> tirx.Expr | None:
        parts = [
            part
            for part in conjuncts(condition)
            if not any(tirx.structural_equal(part, known) for known in self._known)
        ]
        return build.all_of(parts, condition.span)


def _may_not_move(node: Any) -> bool:
    """What is not evaluated before a loop that may not run: reads, and divisions that may trap."""
    if isinstance(node, (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)):
        return not isinstance(node.b, tirx.IntImm)
    return isinstance(node, (tirx.TensorLoad, tirx.Call))
