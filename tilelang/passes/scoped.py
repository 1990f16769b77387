"""How does a rewriting pass know what holds where it is?

`ScopedRewriter` is a `Rewriter` that keeps a `Prover` up to date: ranges of loop and launch
variables, values of bound names, conditions of branches, assumptions of the author.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tilelang.analysis.ranges import Prover, written_buffers
from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import Rewriter, any_changed


class ScopedRewriter(Rewriter):
    """Rewrites a function with facts about its variables at hand."""

    def __init__(self, func: tirx.PrimFunc) -> None:
        # Runtime dimensions get no range: a constant bound on them makes the prover fail, slowly,
        # on `by * 64 + i < M` under `M % 64 == 0`, which it proves at once without.
        self.prover = Prover(written_buffers(func.body))

    def for_(self, s: Any) -> Any:
        self.prover.bind_range(s.loop_var, s.min, s.extent)
        return super().for_(s)

    def bind(self, s: Any) -> Any:
        self.prover.bind_value(s.var, s.value)
        return super().bind(s)

    def attr(self, s: Any) -> Any:
        if s.attr_key == attrs.THREAD_EXTENT:
            zero = build.const(0, build.dtype_of(s.node.var))
            self.prover.bind_range(s.node.var, zero, s.value)
        return super().attr(s)

    def seq(self, s: Any) -> Any:
        old = list(s.seq)
        new = []
        with ExitStack() as facts:
            for stmt in old:
                new.append(self.any(stmt))
                if called_op(stmt) == "assume":
                    facts.enter_context(self.prover.under(stmt.value.args[0]))
        return build.seq(new, s.span) if any_changed(old, new) else s

    def if_(self, s: Any) -> Any:
        condition, then, orelse = s.condition, s.then_case, s.else_case
        test = self.any(condition)
        with self.prover.under(condition):
            new_then = self.any(then)
        new_else = None
        if orelse is not None:
            with self.prover.under(tirx.Not(condition)):
                new_else = self.any(orelse)
        if test is condition and new_then is then and new_else is orelse:
            return s
        return tirx.IfThenElse(test, new_then, new_else, s.span)

    def call(self, e: Any) -> Any:
        if not is_lazy_select(e):
            return super().call(e)
        condition, true, false = list(e.args)
        test = self.any(condition)
        with self.prover.under(condition):
            new_true = self.any(true)
        with self.prover.under(tirx.Not(condition)):
            new_false = self.any(false)
        if not any_changed([condition, true, false], [test, new_true, new_false]):
            return e
        return tirx.Call(e.op, [test, new_true, new_false], span=e.span, ret_ty=e.ty)


def is_lazy_select(expr: Any) -> bool:
    """Whether `expr` is an if_then_else, which evaluates only the side taken."""
    return (
        isinstance(expr, tirx.Call)
        and isinstance(expr.op, tirx.Op)
        and str(expr.op.name) == "prim.if_then_else"
    )
