"""What does each thread of a launch do where threads are told apart? Conditions and indices as
numbers, one per thread; shared by the checks of barriers and of shared memory.

    tx = T.get_thread_binding()
    if tx < 64:            # holds for threads 0 to 63 of 128
        tile[tx % 32] = …  # elements 0 … 31, 0 … 31

Whatever else decides (blocks, loops) is tried at its first and at its last value, inner loops with
the extent they have there: what is found does happen. Nothing is known of what depends on memory or
on a size of the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.layout.lazy import np
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import variables
from tilelang.program.arith import constant_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = dict[ex.Var, Any]
Mask: TypeAlias = "NDArray[np.bool_]"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a statement stands in a launch: conditions with the outcome that leads here."""

    launch: st.Launch
    conditions: tuple[tuple[ex.Expr, bool], ...] = ()
    loops: tuple[st.For, ...] = ()
    grouped: bool = False  # inside `with T.ws(…)` or a loop that nobody can count

    @property
    def thread_vars(self) -> tuple[ex.Var, ...]:
        return tuple(var for var, _ in self.launch.threads)

    def cases(self) -> Iterator[tuple[Values, Mask]]:
        """Values of everything that has a range (threads as arrays, the rest at either end) where
        some thread comes here, and which threads do. Nothing where that is not known."""
        threads = self._threads()
        for last in (False, True) if threads else ():
            values = dict(threads)
            for var, extent in self.launch.blocks:
                count = constant_value(extent)
                if count is not None or not last:
                    values[var] = count - 1 if last and count is not None else 0
            here = self._here(values, last)
            if here is not None and here.any():
                yield values, here

    def _threads(self) -> Values:
        counts = [constant_value(extent) for _, extent in self.launch.threads]
        known = [n for n in counts if n is not None and n > 0]
        if len(known) < len(counts) or not known:
            return {}
        numbers: Any = np.arange(math.prod(known))
        threads: Values = {}
        for var, extent in zip(self.thread_vars, known, strict=True):  # x runs fastest
            threads[var] = numbers % extent
            numbers = numbers // extent
        return threads

    def _here(self, values: Values, last: bool) -> Mask | None:
        """Which threads come here in the first or last round of every loop; gives the variables of
        the loops their `values`."""
        here: Mask = np.ones(len(values[self.thread_vars[0]]), dtype=bool)
        for v in (v for loop in self.loops for v in loop.loop_vars):
            extent = number(v.extent, values)
            if extent is None:
                if _may_vary(v.extent):
                    return None
                turn = None if last else 0
            else:
                rounds = np.broadcast_to(extent, here.shape)
                turn = max(int(rounds[here].max()), 1) - 1 if last else 0
                here = here & (rounds > turn)
            if not here.any():
                return None
            start, step = number(v.start, values), 1 if v.step is None else number(v.step, values)
            if turn is not None and start is not None and step is not None:
                values[v.var] = start + turn * step
        for condition, outcome in self.conditions:
            holds = number(condition, values)
            if holds is None:
                return None
            here = here & (np.asarray(holds, dtype=bool) == outcome)
        return here


def walk_by_thread(function: st.Function) -> Iterator[tuple[st.Stmt, Place]]:
    """Every statement of every launch, in program order."""
    for stmt in st.walk_statements(function.body):
        if isinstance(stmt, st.Launch):
            yield from _walk(stmt.body, Place(stmt))


def number(expr: ex.Expr, values: Mapping[ex.Var, Any]) -> Any:
    """The value of `expr`, an array where threads differ; None when it is not known."""
    from tilelang.layouts.indices import Opaque, evaluate

    try:
        return evaluate(expr, values)
    except Opaque:
        return None


def depends_on_threads(expr: ex.Expr, place: Place) -> bool:
    """Whether threads may see different values of `expr` through its own arithmetic."""
    return not variables(expr).isdisjoint(place.thread_vars)


def _may_vary(expr: ex.Expr) -> bool:
    """Whether threads may see different values of an `expr` that has no number."""
    return any(v.kind in ("let", "loop", "thread") and v.definition is None
               for v in variables(expr)) or any(
        isinstance(node, ex.Load | ex.Intrinsic) for node in ex.walk(expr)
    )  # fmt: skip


def _walk(block: st.Block, place: Place) -> Iterator[tuple[st.Stmt, Place]]:
    for stmt in block:
        yield stmt, place
        match stmt:
            case st.For():
                # Which rounds there are, and which of them come to their end, is counted only where
                # nothing leaves one.
                left = any(isinstance(inner, st.Jump) for inner in st.walk_statements(stmt.body))
                inside = replace(place, loops=(*place.loops, stmt), grouped=place.grouped or left)
                yield from _walk(stmt.body, inside)
            case st.While(body=body):
                yield from _walk(body, replace(place, grouped=True))
            case st.If(condition=condition, then=then, orelse=orelse):
                for branch, outcome in ((then, True), (orelse, False)):
                    conditions = (*place.conditions, (condition, outcome))
                    yield from _walk(branch, replace(place, conditions=conditions))
            case st.Scoped(body=body):
                yield from _walk(body, replace(place, grouped=True))
            case _:
                pass
