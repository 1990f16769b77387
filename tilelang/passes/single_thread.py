"""How is what one thread does for its block kept together?

Before: if tx == 0: B[0] = 1
        for i in range(8): if tx == 0: B[0] = B[0] + A[i]
After:  if tx == 0:
            B[0] = 1
            for i in range(8): B[0] = B[0] + A[i]

The fewer ways in and out, the fewer barriers: the thread itself does its work in order.
"""

from __future__ import annotations

from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.ir.visit import collect, statements, uses


class SingleThread:
    """Remembers which statements are for one thread, and gathers them."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}  # `if` of one thread -> its condition

    def only(self, condition: Any, stmt: Any, span: TirSpan) -> Any:
        """`stmt` for the thread that `condition` names."""
        made = tirx.IfThenElse(condition, stmt, None, span)
        self._made[made] = condition
        return made

    def gathered(self, s: Any) -> Any:
        """A sequence, loop or branch, rewritten so that what is for one thread is outermost."""
        match type(s).__name__:
            case "SeqStmt":
                return self._sequence(s)
            case "For" | "While":
                return self._loop(s)
            case "IfThenElse":
                return self._branch(s)
            case _:
                return s

    def _condition(self, s: Any) -> Any:
        return None if s is None else self._made.get(s)

    def _sequence(self, s: Any) -> Any:
        found = self._joined(self._names_inside(self._joined(statements(s))))
        return found[0] if len(found) == 1 else build.seq(found, s.span)

    def _joined(self, stmts: list[Any]) -> list[Any]:
        found: list[Any] = []
        for stmt in stmts:
            condition = self._condition(stmt)
            if condition is None:
                found.append(stmt)
                continue
            parts = statements(stmt.then_case)
            earlier = self._condition(found[-1]) if found else None
            if earlier is not None and tirx.structural_equal(earlier, condition):
                parts = [*statements(found.pop().then_case), *parts]
            found.append(self.only(condition, build.seq(parts, stmt.span), stmt.span))
        return found

    def _names_inside(self, stmts: list[Any]) -> list[Any]:
        """Names that only the one thread uses are bound where it is."""
        found: list[Any] = []
        used_later: list[Any] = []
        for stmt in reversed(stmts):
            last = found[-1] if found else None
            condition = self._condition(last)
            movable = isinstance(stmt, tirx.Bind) and not collect(stmt.value, tirx.Call)
            movable = movable and not any(uses(x, [stmt.var]) for x in used_later)
            if last is None or condition is None or not movable:
                if last is not None:
                    used_later.append(last)
                found.append(stmt)
                continue
            body = build.seq([stmt, *statements(last.then_case)], last.span)
            found[-1] = self.only(condition, body, last.span)
        return found[::-1]

    def _loop(self, s: Any) -> Any:
        condition = self._condition(s.body)
        if condition is None or uses_of_loop(s, condition):
            return s
        inner = s.body.then_case
        if isinstance(s, tirx.For):
            made = build.replace_body(s, inner)
        else:
            made = tirx.While(s.condition, inner, s.span)
        return self.only(condition, made, s.span)

    def _branch(self, s: Any) -> Any:
        if s in self._made:
            return s
        sides = [x for x in (s.then_case, s.else_case) if x is not None]
        conditions = [self._condition(x) for x in sides]
        if any(c is None for c in conditions):
            return s
        if not all(tirx.structural_equal(c, conditions[0]) for c in conditions[1:]):
            return s
        inner = [x.then_case for x in sides]
        orelse = inner[1] if len(inner) > 1 else None
        made = tirx.IfThenElse(s.condition, inner[0], orelse, s.span)
        return self.only(conditions[0], made, s.span)


def uses_of_loop(s: Any, condition: Any) -> bool:
    """Whether which thread it is depends on the iteration."""
    return isinstance(s, tirx.For) and uses(condition, [s.loop_var])
