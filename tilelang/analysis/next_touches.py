"""What happens first to each buffer after a loop, or before it in the next turn of a loop around?

A loop may keep several versions of a buffer only if nobody looks for the last one afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.analysis.tile_effects import effects_of
from tilelang.ir import attrs, tirx
from tilelang.ir.visit import contains


def next_touches(body: Any, loop: Any, views: Mapping[Any, Any]) -> dict[Any, bool]:
    """For each buffer touched outside of `loop`: whether the first touch after it writes all of
    the buffer. Loops around begin again after their end."""
    found: dict[Any, bool] = {}
    for stmt in (inner for s in _after(body, loop) for inner in _flat(s)):
        effects = effects_of(stmt, views)
        for buffer in effects.touches():
            # A read counts unless the statement has written everything before.
            found.setdefault(buffer, buffer not in effects.reads and effects.writes[buffer])
    return found


def _flat(s: Any) -> list[Any]:
    """The statements of `s` in order; of a loop, those of one iteration."""
    if isinstance(s, tirx.SeqStmt):
        return [x for part in s.seq for x in _flat(part)]
    if isinstance(s, (tirx.AttrStmt, tirx.While)) or (
        isinstance(s, tirx.For) and attrs.PARALLEL not in s.annotations
    ):
        return _flat(s.body)
    return [s]


def _after(s: Any, loop: Any) -> list[Any]:
    """Statements that may follow `loop`, nearest first."""
    if isinstance(s, tirx.SeqStmt):
        stmts = list(s.seq)
        place = next(n for n, x in enumerate(stmts) if _holds(x, loop))
        return [*_after(stmts[place], loop), *stmts[place + 1 :]]
    if isinstance(s, (tirx.For, tirx.While)) and not s.same_as(loop):
        return [*_after(s.body, loop), *_before(s.body, loop)]
    if isinstance(s, tirx.AttrStmt):
        return _after(s.body, loop)
    if isinstance(s, tirx.IfThenElse):
        inside = s.then_case if _holds(s.then_case, loop) else s.else_case
        return _after(inside, loop)
    return []


def _before(s: Any, loop: Any) -> list[Any]:
    """Statements of a block that come before `loop`, in order."""
    if isinstance(s, tirx.SeqStmt):
        stmts = list(s.seq)
        place = next(n for n, x in enumerate(stmts) if _holds(x, loop))
        return [*stmts[:place], *_before(stmts[place], loop)]
    if isinstance(s, (tirx.AttrStmt, tirx.For, tirx.While)) and not s.same_as(loop):
        return _before(s.body, loop)
    if isinstance(s, tirx.IfThenElse):
        return _before(s.then_case if _holds(s.then_case, loop) else s.else_case, loop)
    return []


def _holds(s: Any, loop: Any) -> bool:
    return contains(s, lambda n: isinstance(n, tirx.For) and n.same_as(loop))
