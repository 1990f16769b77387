"""Do two threads write one element of shared memory in the same statement? (TL509)

    tile[tx % 32] = A[tx]       # threads 0 and 32 both write tile[0]

No barrier can order them: they are at the same place. Threads that store the same value do no
harm. What threads do to each other in different statements, the compiler keeps apart itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilelang.checks.by_thread import Place, active, depends_on_threads, number, walk_by_thread
from tilelang.layout.lazy import np
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Load, Var, walk
from tilelang.program.stmt import Function, Store
from tilelang_diagnostics.model import Diagnostic

_PRIVATE = ("local", "local.var", "local.fragment")


def check(function: Function) -> Iterator[Diagnostic]:
    """Stores of single threads to shared memory that meet."""
    for stmt, place in walk_by_thread(function):
        if not isinstance(stmt, Store) or not stmt.buffer.is_shared or place.grouped:
            continue
        if any(loop.kind == "parallel" for loop in place.loops):
            continue
        if any(depends_on_threads(e, place) for e in (*stmt.indices, *_parts(stmt.value))):
            found = _meeting(stmt, place)
            if found is not None:
                yield _diagnostic(stmt, *found)


def _meeting(stmt: Store, place: Place) -> tuple[int, int, tuple[int, ...]] | None:
    """Two threads that write the same element, and the element."""
    for values in place.samples():
        here = active(place, values)
        rows = [number(index, values) for index in stmt.indices]
        if here is None or any(row is None for row in rows):
            continue
        writers = np.flatnonzero(here)
        places = np.stack([np.broadcast_to(row, here.shape)[writers] for row in rows])
        _, first, group = np.unique(places, axis=1, return_index=True, return_inverse=True)
        group = group.ravel()
        for later in np.flatnonzero(first[group] != np.arange(len(writers))):
            a, b = int(writers[first[group[later]]]), int(writers[later])
            if _differs(stmt.value, values, a, b):
                return a, b, tuple(int(row[later]) for row in places)
    return None


def _differs(value: Expr, values: Mapping[Var, Any], a: int, b: int) -> bool:
    """Whether two threads store different things, as far as the text says."""
    known = number(value, values)
    if known is not None:
        return _apart(known, a, b)
    for node in walk(value):
        if isinstance(node, Load):
            if node.buffer.scope_name in _PRIVATE:
                return True
            rows = [number(index, values) for index in node.indices]
            if any(row is not None and _apart(row, a, b) for row in rows):
                return True
    return False


def _apart(numbers: Any, a: int, b: int) -> bool:
    return bool(np.ndim(numbers)) and bool(numbers[a] != numbers[b])


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
