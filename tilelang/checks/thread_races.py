"""Do two threads write one element of shared memory in the same statement? (TL509)

    tile[tx % 32] = A[tx]       # threads 0 and 32 both write tile[0]

    if tx < 64:
        total[0] = total[0] + 1

No barrier can order them: they are at the same place. Threads that store the same value do no
harm, unless they compute it from what the others store: what a private variable holds differs where
everything that was stored to it does. What threads do to each other in different statements, the
compiler keeps apart itself, and what no thread is told apart in, one of them does for the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.checks.by_thread import Place, depends_on_threads, number, walk_by_thread
from tilelang.layout.lazy import np
from tilelang.program.accesses import accesses, storage
from tilelang.program.arith import constant_value, same
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Intrinsic, Load, Var, walk
from tilelang.program.scalar_ops import THREAD_OPS
from tilelang.program.stmt import Function, Stmt, Store
from tilelang_diagnostics.model import Diagnostic

_PRIVATE = ("local", "local.var", "local.fragment")


Walked = Sequence[tuple[Stmt, Place]]


def check(function: Function) -> Iterator[Diagnostic]:
    """Stores of single threads to shared memory that meet."""
    walked = list(walk_by_thread(function))
    for at, (stmt, place) in enumerate(walked):
        if not isinstance(stmt, Store) or not stmt.buffer.is_shared or place.grouped:
            continue
        if _is_parallel(place):
            continue
        parts = (*stmt.indices, *_parts(stmt.value))
        if _updates(stmt):
            # Without threads of its own in it, the block does it once.
            parts = (*parts, *(condition for condition, _ in place.conditions))
        if any(depends_on_threads(e, place) for e in parts):
            found = _meeting(stmt, place, walked, at)
            if found is not None:
                yield _diagnostic(stmt, *found)


def _meeting(
    stmt: Store, place: Place, walked: Walked, at: int
) -> tuple[int, int, tuple[int, ...]] | None:
    """Two threads that write the same element, and the element."""
    for values, here in place.cases():
        rows = [number(index, values) for index in stmt.indices]
        if any(row is None for row in rows):
            continue
        writers = np.flatnonzero(here)
        places = np.stack([np.broadcast_to(row, here.shape)[writers] for row in rows])
        _, first, group = np.unique(places, axis=1, return_index=True, return_inverse=True)
        group = group.ravel()
        for later in np.flatnonzero(first[group] != np.arange(len(writers))):
            a, b = int(writers[first[group[later]]]), int(writers[later])
            if _updates(stmt) or _Pair(walked, a, b).differs(stmt.value, values, at):
                return a, b, tuple(int(row[later]) for row in places)
    return None


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two threads of a walked function."""

    walked: Walked
    a: int
    b: int

    def differs(
        self, value: Expr, values: Mapping[Var, Any], at: int, seen: frozenset[int] = frozenset()
    ) -> bool:
        """Whether both have different values of `value` at statement `at`, as far as the text
        says: not where threads exchange what they have."""
        known = number(value, values)
        if known is not None:
            return self.apart(known)
        if any(isinstance(n, Intrinsic) and n.name in THREAD_OPS for n in walk(value)):
            return False
        for load in (n for n in walk(value) if isinstance(n, Load)):
            if load.buffer.scope_name in _PRIVATE:
                if self.holds_different(storage(load.buffer), values, at, seen):
                    return True
                continue
            rows = [number(index, values) for index in load.indices]
            if any(row is not None and self.apart(row) for row in rows):
                return True
        return False

    def holds_different(
        self, buffer: Buffer, values: Mapping[Var, Any], at: int, seen: frozenset[int]
    ) -> bool:
        """Whether everything that a private buffer may hold at statement `at` differs."""
        stores = _stores(buffer, self.walked, at)
        return bool(stores) and all(self.store_differs(m, values, at, seen) for m in stores)

    def store_differs(
        self, m: int, values: Mapping[Var, Any], at: int, seen: frozenset[int]
    ) -> bool:
        (stmt, place), here = self.walked[m], self.walked[at][1]
        always = place.conditions == here.conditions[: len(place.conditions)]
        if m in seen or not isinstance(stmt, Store) or not always or place.grouped:
            return False
        if _is_parallel(place):
            return False
        starts = {v.var: 0 for loop in place.loops for v in loop.loop_vars}
        return self.differs(stmt.value, {**starts, **values}, m, seen | {m})

    def apart(self, numbers: Any) -> bool:
        return bool(np.ndim(numbers)) and bool(numbers[self.a] != numbers[self.b])


def _stores(buffer: Buffer, walked: Walked, at: int) -> list[int]:
    """The statements that may have written what `buffer` holds at statement `at`."""
    here = walked[at][1]
    writing = [
        m for m, (stmt, place) in enumerate(walked) if place.launch is here.launch
        and any(storage(a.buffer) is buffer and a.kind != "read" for a in accesses(stmt))
    ]  # fmt: skip
    before = [m for m in writing if m < at]
    # One element holds what was written last; of several, nobody knows which is asked for.
    last = before[-1:] if all(constant_value(n) == 1 for n in buffer.shape) else before
    return last + [m for m in writing if m >= at and set(walked[m][1].loops) & set(here.loops)]


def _updates(stmt: Store) -> bool:
    """Whether what is stored is computed from what was there: `tile[0] = tile[0] + 1`."""
    loads = (n for n in walk(stmt.value) if isinstance(n, Load) and n.buffer is stmt.buffer)
    return any(
        all(same(a, b) for a, b in zip(load.indices, stmt.indices, strict=True)) for load in loads
    )


def _is_parallel(place: Place) -> bool:
    return any(loop.kind == "parallel" for loop in place.loops)


def _parts(value: Expr) -> Iterator[Expr]:
    yield value
    for node in walk(value):
        if isinstance(node, Load):
            yield from node.indices


def _diagnostic(stmt: Store, a: int, b: int, element: tuple[int, ...]) -> Diagnostic:
    name = stmt.buffer.name
    shown = f"{name}[{', '.join(map(str, element))}]"
    return make_diagnostic(
        "TL509",
        f"threads {a} and {b} both write `{shown}`, and nothing says which comes last",
        span=stmt.span,
        label=f"`{shown}` for thread {a} and for thread {b}",
        help=f"let one thread write it (`if tx < …`), give each thread an element of `{name}` of "
        "its own, or combine them with `T.atomic_add`",
    )
