"""What does each thread of a launch do where threads are told apart? Conditions and indices as
numbers, one per thread; shared by the checks of barriers and of shared memory.

    tx = T.get_thread_binding()
    if tx < 64:            # holds for threads 0 to 63 of 128
        tile[tx % 32] = …  # elements 0 … 31, 0 … 31

Whatever else decides (blocks, loops) is tried at its first and at its last value: what is found
does happen. Nothing is known of what depends on memory or on a size of the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilelang.layout.lazy import np
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import Context, variables
from tilelang.program.arith import constant_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    def samples(self) -> Iterator[dict[ex.Var, Any]]:
        """Values of everything that has a range: threads as arrays, the rest at either end."""
        counts = [constant_value(extent) for _, extent in self.launch.threads]
        known = [n for n in counts if n is not None and n > 0]
        if len(known) < len(counts) or not known:
            return
        numbers: Any = np.arange(math.prod(known))
        threads: dict[ex.Var, Any] = {}
        for var, extent in zip(self.thread_vars, known, strict=True):  # x runs fastest
            threads[var] = numbers % extent
            numbers = numbers // extent
        ranges = Context(loops=self.loops, launch=self.launch).ranges()
        others = {v: r for v, r in ranges.items() if v not in threads}
        for end in (0, 1):
            values = {v: r[end] for v, r in others.items() if r[end] is not None}
            yield {**threads, **values}


def walk_by_thread(function: st.Function) -> Iterator[tuple[st.Stmt, Place]]:
    """Every statement of every launch, in program order."""
    for stmt in st.walk_statements(function.body):
        if isinstance(stmt, st.Launch):
            yield from _walk(stmt.body, Place(stmt))


def active(place: Place, values: Mapping[ex.Var, Any]) -> NDArray[np.bool_] | None:
    """Which threads come here; None when that is not known."""
    found: Any = np.ones(_count(place, values), dtype=bool)
    for condition, outcome in place.conditions:
        holds = number(condition, values)
        if holds is None:
            return None
        found = found & (np.asarray(holds, dtype=bool) == outcome)
    return np.asarray(found)


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


def _count(place: Place, values: Mapping[ex.Var, Any]) -> int:
    return len(values[place.thread_vars[0]])


def _walk(block: st.Block, place: Place) -> Iterator[tuple[st.Stmt, Place]]:
    for stmt in block:
        yield stmt, place
        match stmt:
            case st.For():
                yield from _walk(stmt.body, replace(place, loops=(*place.loops, stmt)))
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
