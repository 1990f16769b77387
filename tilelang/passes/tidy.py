"""What one thread does is left as readable as it is, without what is certain or unused.

Before: const int i = tx // 4; const int j = 0; if 0 < 64: A_s[(0 * 16 + i) * 32 + 0] = …
After:  const int i = tx // 4; A_s[i * 32] = …

Conditions are decided and loops of one iteration written out, as in `simplify`; indices keep the
names of the author's loop variables.
"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.ranges import is_integer
from tilelang.ir import build, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import Rewriter, collect, contains, with_body
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.simplify import Simplifier


def tidy(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Decide what is certain, fold constants, drop names that nothing uses."""
    with nested("decide") as made:
        body = _Tidy(func).any(func.body)
        made.append(with_body(func, body))
    while True:
        with nested("drop_unused") as made:
            kept = _DropUnused(_uses(body)).any(body)
            made.append(with_body(func, kept))
        if kept is body:
            return with_body(func, body)
        body = kept


class _Tidy(Simplifier):
    def load(self, e: Any) -> Any:
        indices, changed = self.many(e.indices)
        return tirx.BufferLoad(e.source, indices, e.span) if changed else e

    def store(self, s: Any) -> Any:
        value = s.value
        new = self.any(value)
        indices, changed = self.many(s.indices)
        if new is value and not changed:
            return s
        return tirx.BufferStore(s.buffer, new, indices, s.span)

    def binary(self, e: Any) -> Any:
        e = super().binary(e)
        return build.folded(e) if is_integer(e) else e


class _DropUnused(Rewriter):
    def __init__(self, counts: dict[Any, int]) -> None:
        self._counts = counts

    def bind(self, s: Any) -> Any:
        if self._counts.get(s.var, 0) or contains(s.value, _has_effect):
            return s
        return build.nothing(s.span)


def _uses(body: Any) -> dict[Any, int]:
    """How often each variable is mentioned, other than where it is bound."""
    counts: dict[Any, int] = {}
    for var in collect(body, tirx.Var):
        counts[var] = counts.get(var, 0) + 1
    for bind in collect(body, tirx.Bind):
        if bind.var in counts:
            counts[bind.var] -= 1
    return counts


def _has_effect(e: Any) -> bool:
    return op_of(e) is not None
