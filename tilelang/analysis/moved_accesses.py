"""The same access in another iteration: earlier, at a number, or in any one.

Every access that is asked for twice is the same object, so that answers about it are found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from tilelang.analysis.overlaps import Overlaps
from tilelang.analysis.shared_accesses import Access, Branch, Inner, Loop, Node
from tilelang.ir import build, tirx
from tilelang.ir.visit import collect, substitute

# A loop of more iterations is not enumerated around an access; what repeats, is.
_MOST_INNER: Final = 64
_FEW: Final = 8


class Moved:
    """Accesses of one launch as they are met while it is run."""

    def __init__(self, overlaps: Overlaps) -> None:
        self.overlaps = overlaps
        self._made: dict[Any, Access] = {}
        self._alive: list[Any] = []
        # Of an access that was moved back: from which one, in which loop, how far.
        self._origins: dict[int, tuple[Access, Loop, int]] = {}
        self._numbers: dict[Any, Any] = {}  # loops that are at a known iteration
        self._conditions: tuple[Any, ...] = ()
        self._negations: dict[int, Any] = {}

    def note_ranges(self, nodes: Sequence[Node]) -> None:
        """Tell what the variables of all loops may be, outer ones first."""
        for node in nodes:
            match node:
                case Loop(var=var, body=body):
                    known = None if var is None else _range_of(node)
                    if known is not None:
                        self.overlaps.ranges[var] = known
                    elif var is not None:
                        self.overlaps.bound(node)
                    self.note_ranges(body)
                case Branch(then=then, orelse=orelse):
                    self.note_ranges((*then, *orelse))
                case _:
                    pass

    @property
    def is_pinned(self) -> bool:
        """Whether some loop is at a known iteration."""
        return bool(self._numbers)

    def turns(self, loop: Loop) -> int | None:
        """How many iterations a loop has where the run stands; None where that is not known."""
        if loop.extent is None:
            return None
        values = {v: build.const(n, build.dtype_of(v)) for v, n in self._numbers.items()}
        extent = substitute(loop.extent, values) if values else loop.extent
        return build.int_value(self.overlaps.simplify(extent))

    def now(self, a: Access) -> Access:
        """`a` where the run stands: at known iterations, under the conditions in force."""
        if not self._numbers and not self._conditions:
            return a
        key = ("now", id(a), tuple((id(v), n) for v, n in self._numbers.items()),
               tuple(map(id, self._conditions)))  # fmt: skip
        return self._kept(key, a, lambda: self._at_numbers(a))

    def _at_numbers(self, a: Access) -> Access:
        values = {v: build.const(n, build.dtype_of(v)) for v, n in self._numbers.items()}
        found = replace(a, guards=(*a.guards, *self._conditions))
        return _substituted(found, values) if values else found

    @contextmanager
    def at(self, loop: Loop, turn: int) -> Iterator[None]:
        """Inside, the loop is at iteration `turn`, if it counts from a constant."""
        low = build.int_value(loop.low) if loop.var is not None else None
        if low is None:
            yield  # its first iterations are like any other
            return
        outer = dict(self._numbers)
        self._numbers[loop.var] = low + turn
        try:
            yield
        finally:
            self._numbers = outer

    @contextmanager
    def under(self, condition: Any, holds: bool) -> Iterator[None]:
        """Inside, a condition holds (or not) for the threads that act."""
        outer = self._conditions
        self._conditions = (*outer, condition if holds else self.negation(condition))
        try:
            yield
        finally:
            self._conditions = outer

    def negation(self, condition: Any) -> Any:
        """`not condition`, always the same object."""
        found = self._negations.get(id(condition))
        if found is None:
            self._alive.append(condition)
            found = self._negations[id(condition)] = tirx.Not(condition, condition.span)
        return found

    def guarded(self, a: Access, guards: tuple[Any, ...]) -> Access:
        """`a` under further conditions."""
        if not guards:
            return a
        key = ("guarded", id(a), tuple(map(id, guards)))
        self._alive.append(guards)
        return self._kept(key, a, lambda: replace(a, guards=(*a.guards, *guards)))

    def repeated(self, a: Access, loop: Loop) -> Access:
        """`a` in all iterations of a loop with nothing in between."""
        if loop.var is None:
            return self._kept(("repeated", id(a), id(loop)), a, lambda: _renamed(a, loop))
        return self._kept(("repeated", id(a), id(loop)), a, lambda: self._quantified(a, loop))

    def quantified(self, a: Access, loop: Loop) -> Access:
        """`a` in an iteration of a loop that is over: which one is not known."""
        return self._kept(("any", id(a), id(loop)), a, lambda: self._quantified(a, loop))

    def last(self, a: Access, loop: Loop) -> Access:
        """`a`, seen from an arbitrary iteration, as the last one of a known number sees it."""
        return self._kept(("last", id(a), id(loop)), a, lambda: _at_last(a, loop))

    def back(self, a: Access, loop: Loop) -> Access:
        """`a` as an iteration later sees it: one earlier than it did."""
        if loop.var is None:
            return self._kept(("back", id(a), id(loop)), a, lambda: _renamed(a, loop))
        base, known, turns = self._origins.get(id(a), (a, loop, 0))
        if known is not loop:
            base, turns = a, 0
        found = self._kept(("back", id(a), id(loop)), a, lambda: _earlier(base, loop, turns + 1))
        self._origins.setdefault(id(found), (base, loop, turns + 1))
        return found

    def _quantified(self, a: Access, loop: Loop) -> Access:
        a = _renamed(a, loop)
        if loop.var is None or not _mentions(a, {loop.var}):
            return a
        known = self.overlaps.ranges.get(loop.var)
        dtype = build.dtype_of(loop.var)
        var = tirx.Var(f"{loop.var.name}_any", dtype, a.span)
        inner = Inner(var, None, None)
        if known is not None and len(known) <= _MOST_INNER:
            inner = Inner(var, build.const(known.start, dtype), len(known))
        moved = _substituted(a, {loop.var: var})
        return replace(moved, inner=(*moved.inner, inner))

    def _kept(self, key: Any, a: Access, make: Any) -> Access:
        found = self._made.get(key)
        if found is None:
            self._alive.append(a)  # so that no id is used twice
            found = self._made[key] = make()
        return found


def _substituted(a: Access, values: dict[Any, Any]) -> Access:
    start = None if a.start is None else substitute(a.start, values)
    return replace(a, start=start, guards=tuple(substitute(g, values) for g in a.guards))


def _mentions(a: Access, variables: Any) -> bool:
    parts = [*a.guards, *([] if a.start is None else [a.start])]
    return any(v in variables for e in parts for v in collect(e, tirx.Var))


def _renamed(a: Access, loop: Loop) -> Access:
    """Names that each iteration has of its own become others."""
    own = {v for v in loop.own if _mentions(a, {v})}
    if not own:
        return a
    fresh = {v: tirx.Var(f"{v.name}_before", build.dtype_of(v), v.span) for v in own}
    return _substituted(a, fresh)


def _earlier(a: Access, loop: Loop, turns: int) -> Access:
    """`a` as it was so many iterations ago."""
    a = _renamed(a, loop)
    known = _range_of(loop)
    mentions = _mentions(a, {loop.var})
    # In a loop of few iterations it matters that there is none before the first.
    if not mentions and (known is None or len(known) > _FEW):
        return a
    dtype = build.dtype_of(loop.var)
    ago = build.const(turns, dtype)
    exists = tirx.GE(loop.var, build.add(loop.low, ago, a.span), a.span)
    if mentions:
        a = _substituted(a, {loop.var: tirx.Sub(loop.var, ago, a.span)})
    return replace(a, guards=(*a.guards, exists))


def _at_last(a: Access, loop: Loop) -> Access:
    known = _range_of(loop) if loop.var is not None else None
    if not known or not _mentions(a, {loop.var}):
        return a
    last = build.const(known[-1], build.dtype_of(loop.var), a.span)
    return _substituted(a, {loop.var: last})


def _range_of(loop: Loop) -> range | None:
    low, extent = build.int_value(loop.low), build.int_value(loop.extent)
    return None if low is None or extent is None else range(low, low + max(extent, 0))
