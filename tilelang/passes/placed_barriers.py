"""A launch with barriers at the places that `plan_barriers` found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilelang.analysis.hazards import Barrier
from tilelang.analysis.shared_accesses import Branch, Leaf, Loop, Node
from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan

MakeBarrier: TypeAlias = "Callable[[Barrier, TirSpan], Any]"


def with_barriers(
    body: Any, nodes: Sequence[Node], before: Mapping[Node, Barrier], make: MakeBarrier
) -> Any:
    """`body` with what `make` gives before the nodes of its tree that wait for others."""
    return _Placing(before, make).statement(body, iter(nodes))


@dataclass(frozen=True, slots=True)
class _Placing:
    """The tree lists the statements of a body in the same order."""

    before: Mapping[Node, Barrier]
    make: MakeBarrier

    def statement(self, s: Any, nodes: Iterator[Node]) -> Any:
        if isinstance(s, tirx.SeqStmt):
            return build.seq([self.statement(x, nodes) for x in s.seq], s.span)
        if isinstance(s, tirx.AttrStmt):
            return tirx.AttrStmt(s.node, s.attr_key, s.value, self.statement(s.body, nodes), s.span)
        node = next(nodes)
        match node:
            case Leaf():
                new = s
            case Loop(body=body):
                new = self._loop(s, body)
            case Branch(then=then, orelse=orelse):
                taken = self.statement(s.then_case, iter(then))
                other = s.else_case
                other = None if other is None else self.statement(other, iter(orelse))
                new = tirx.IfThenElse(s.condition, taken, other, s.span)
        barrier = self.before.get(node)
        return new if barrier is None else build.seq([self.make(barrier, s.span), new], s.span)

    def _loop(self, s: Any, body: tuple[Node, ...]) -> Any:
        inner = self.statement(s.body, iter(body))
        last = body[-1] if body else None
        if isinstance(last, Leaf) and last.closes and last in self.before:
            inner = build.seq([inner, self.make(self.before[last], s.span)], s.span)
        is_for = isinstance(s, tirx.For)
        return build.replace_body(s, inner) if is_for else tirx.While(s.condition, inner, s.span)
