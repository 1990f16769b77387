"""A block of statements with other variables, and tiles that have versions.

Before: T.gemm(A_shared, B_shared, C_local)         S[i] = A_shared[i, 0]
After:  T.gemm(A_shared[slot, :, :], …)             S[i] = A_shared[slot, i, 0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.buffer import Buffer, Range, Region


@dataclass(frozen=True, slots=True, eq=False)
class Renamed:
    """Rewrites expressions and statements: `variables` by their values, each of `versions` by its
    larger tile and the number of the version."""

    variables: Mapping[ex.Var, ex.Expr]
    versions: Mapping[Buffer, tuple[Buffer, ex.Expr]]

    def region(self, region: Region) -> Region:
        """A region, of the version of its tile."""
        ranges = tuple(
            Range(self.expr(r.min), self.expr(r.extent), r.is_point) for r in region.ranges
        )
        if region.buffer not in self.versions:
            return Region(region.buffer, ranges, region.span)
        tile, number = self.versions[region.buffer]
        first = Range(number, ex.Const(1, ex.INT32), is_point=True)
        return Region(tile, (first, *ranges), region.span)

    def expr(self, e: Any) -> Any:
        """An expression."""
        match e:
            case ex.Var():
                return self.variables.get(e, e)
            case ex.Load(buffer=buffer, indices=indices):
                places = tuple(map(self.expr, indices))
                if buffer in self.versions:
                    buffer, number = self.versions[buffer]
                    places = (number, *places)
                return replace(e, buffer=buffer, indices=places)
            case ex.Intrinsic(args=args):
                return replace(e, args=tuple(map(self.operand, args)))
            case ex.Binary(left=left, right=right):
                return replace(e, left=self.expr(left), right=self.expr(right))
            case ex.Unary(operand=operand) | ex.Cast(operand=operand):
                return replace(e, operand=self.expr(operand))
            case ex.Select(condition=condition, true=true, false=false):
                return replace(
                    e, condition=self.expr(condition), true=self.expr(true), false=self.expr(false)
                )
            case ex.Vector(lanes=lanes):
                return replace(e, lanes=tuple(map(self.expr, lanes)))
        return e

    def operand(self, value: Any) -> Any:
        """A region or an expression."""
        return self.region(value) if isinstance(value, Region) else self.expr(value)

    def block(self, block: st.Block) -> st.Block:
        """Statements in order."""
        return tuple(map(self.statement, block))

    def statement(self, s: st.Stmt) -> st.Stmt:
        """One statement and what is in it."""
        match s:
            case st.TileOp(args=args):
                return replace(s, args=tuple(map(self.operand, args)))
            case st.Store(indices=indices, value=value):
                return replace(s, indices=tuple(map(self.expr, indices)), value=self.expr(value))
            case st.Let(value=value) | st.Evaluate(value=value):
                return replace(s, value=self.expr(value))
            case st.Allocate(init=init) if init is not None:
                return replace(s, init=self.expr(init))
            case st.For(loop_vars=loop_vars, body=body):
                ranges = tuple(
                    replace(v, start=self.expr(v.start), extent=self.expr(v.extent))
                    for v in loop_vars
                )
                return replace(s, loop_vars=ranges, body=self.block(body))
            case st.While(condition=condition, body=body):
                return replace(s, condition=self.expr(condition), body=self.block(body))
            case st.If(condition=condition, then=then, orelse=orelse):
                return replace(
                    s, condition=self.expr(condition), then=self.block(then),
                    orelse=self.block(orelse),
                )  # fmt: skip
            case st.Assume(condition=condition):
                return replace(s, condition=self.expr(condition))
        return s
