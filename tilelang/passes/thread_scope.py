"""Which threads run a statement, and what is known of its variables there?

`ThreadScope` is a `ScopedRewriter` that also knows the launch: how many threads there are, the
number of this one, the warp groups of a `with T.ws(…):`, sequential loops of constant range
around, names bound, and conditions in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.homes import Homes, homes_of
from tilelang.ir.index_values import Opaque, evaluate, variables_of
from tilelang.ir.spans import TirSpan
from tilelang.ir.visit import any_changed
from tilelang.layout.lazy import np
from tilelang.passes.scoped import ScopedRewriter

WARP_GROUP: Final = 128  # threads of one index of `T.ws`
WARP_SPECIALIZED: Final = attrs.SCOPED + "ws"


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """A group of threads of a block, `[first, first + count)`; axes from x on."""

    axes: tuple[tuple[Any, int], ...]
    first: int
    count: int
    whole: int

    def number(self, span: TirSpan) -> tirx.Expr:
        """The number of this thread in the group."""
        total: tirx.Expr | None = None
        stride = 1
        for var, extent in self.axes:
            value = build.cast(var, "int32", span)
            if stride > 1:
                value = tirx.Mul(value, build.const(stride, "int32", span), span)
            total = value if total is None else tirx.Add(value, total, span)
            stride *= extent
        found = build.const(0, "int32", span) if total is None else total
        if self.first:
            found = tirx.Sub(found, build.const(self.first, "int32", span), span)
        return found

    def values(self) -> dict[Any, Any]:
        """The coordinates of every thread of the group, by axis."""
        number = np.arange(self.count) + self.first
        found = {}
        for var, extent in self.axes:
            found[var] = number % extent
            number = number // extent
        return found


class ThreadScope(ScopedRewriter):
    """Rewrites a function with the threads of each statement at hand."""

    def __init__(self, func: tirx.PrimFunc) -> None:
        super().__init__(func)
        self.homes: Homes = homes_of(func.body)
        self.threads = Threads((), 0, 1, 1)
        self.counters: dict[Any, range] = {}
        self.bindings: dict[Any, Any] = {}
        self.conditions: tuple[Any, ...] = ()

    def attr(self, s: Any) -> Any:
        outer = self.threads
        if s.attr_key == attrs.THREAD_EXTENT:
            self.threads = within(s, outer)
        elif s.attr_key == WARP_SPECIALIZED:
            self.threads = group_of(s, outer)
        new = super().attr(s)
        self.threads = outer
        return new

    def for_(self, s: Any) -> Any:
        low, extent = build.int_value(s.min), build.int_value(s.extent)
        if low is not None and extent is not None and extent > 0:
            if attrs.PARALLEL not in s.annotations:
                self.counters[s.loop_var] = range(low, low + extent)
        return super().for_(s)

    def bind(self, s: Any) -> Any:
        self.bindings[s.var] = s.value
        return super().bind(s)

    def if_(self, s: Any) -> Any:
        """As in `ScopedRewriter`, remembering the conditions."""
        old = [s.condition, s.then_case, s.else_case]
        new = [self.any(s.condition), None, None]
        with self._given(s.condition), self.prover.under(s.condition):
            new[1] = self.any(s.then_case)
        if s.else_case is not None:
            negated = tirx.Not(s.condition, s.span)
            with self._given(negated), self.prover.under(negated):
                new[2] = self.any(s.else_case)
        return tirx.IfThenElse(*new, s.span) if any_changed(old, new) else s

    @contextmanager
    def _given(self, condition: Any) -> Iterator[None]:
        outer = self.conditions
        self.conditions = (*outer, condition)
        try:
            yield
        finally:
            self.conditions = outer

    def leader(self) -> int | None:
        """The first thread of the group that gets here; None when a condition that differs between
        threads is only known at run time."""
        values = self.threads.values()
        for condition in self.conditions:
            try:
                evaluate(condition, values, self.bindings)
            except Opaque:
                if set(variables_of(condition, self.bindings)) & set(values):
                    return None
        mask = self.running()
        return int(mask.argmax()) if mask.any() else 0

    def holds_for_all(self, condition: Any) -> bool:
        """Whether a condition is known to hold for every thread of the group."""
        try:
            found = evaluate(condition, self.threads.values(), self.bindings)
        except Opaque:
            return False
        return bool(np.all(found))

    def running(self) -> Any:
        """Which threads of the group may get here; conditions on data let all pass."""
        mask = np.ones(self.threads.count, dtype=bool)
        values = self.threads.values()
        for condition in self.conditions:
            try:
                found = np.asarray(evaluate(condition, values, self.bindings), dtype=bool)
            except Opaque:
                continue
            mask &= np.broadcast_to(found, mask.shape)
        return mask


def neighbours(mask: Any) -> tuple[int, int] | None:
    """The first of the threads in `mask` and how many there are, if they stand side by side."""
    first, count = int(mask.argmax()), int(mask.sum())
    return (first, count) if count and mask[first : first + count].all() else None


def written_at(condition: Any) -> TirSpan:
    """Where the author wrote a condition; that of an `else` is negated."""
    inner = condition.a if isinstance(condition, tirx.Not) else condition
    return inner.span or condition.span


def within(s: Any, outer: Threads) -> Threads:
    """The threads of a block once the axis that `s` opens is counted."""
    tag = str(s.node.thread_tag)
    if tag not in attrs.THREAD_TAGS:
        return Threads((), 0, 1, 1)
    extent = build.int_value(s.value)
    if extent is None:
        raise ValueError(f"the extent of {tag} is no constant")
    # The axes are opened from z to x.
    count = outer.count * extent
    return Threads(((s.node.var, extent), *outer.axes), 0, count, count)


def group_of(s: Any, outer: Threads) -> Threads:
    """The threads that run the body of a `with T.ws(…):`."""
    said = dict(s.node).get("args", ())
    indices = [int(i) for i in said if isinstance(i, int)]
    if not indices or len(indices) != len(list(said)):
        return outer
    low, high = min(indices) * WARP_GROUP, (max(indices) + 1) * WARP_GROUP
    first, last = max(low, outer.first), min(high, outer.first + outer.count)
    if first >= last:
        return outer
    return Threads(outer.axes, first, last - first, outer.whole)
