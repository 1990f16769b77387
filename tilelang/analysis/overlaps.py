"""May two different threads touch the same bytes with two accesses?

Decided by looking: the bytes of all threads and inner iterations are enumerated as arrays. What is
the same on both sides and only shifts them (the block, an outer loop) is subtracted first; other
variables are enumerated over one period (`k % 3`) or over their whole range. Where that is not
possible the answer is yes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tilelang.analysis.periods import period
from tilelang.analysis.shared_accesses import Access, LaunchTree
from tilelang.ir import build, tirx
from tilelang.ir.index_values import Opaque, evaluate
from tilelang.ir.visit import collect
from tilelang.layout.lazy import np

_MOST_CASES: Final = 256
_MOST_PLACES: Final = 1 << 22
_MOST_RANGE: Final = 64


class Level(IntEnum):
    """Which threads meet: none, only ones of the same warp, or ones of different warps."""

    NONE = 0
    WARP = 1
    BLOCK = 2


@dataclass(frozen=True, slots=True)
class _Touched:
    """Per unit of memory from `base` on: a thread and a warp that touch it (-1: nobody), and
    whether several do."""

    base: int
    thread: Any
    several: Any
    warp: Any
    several_warps: Any


class Overlaps:
    """Answers for one launch, each found once."""

    def __init__(self, tree: LaunchTree, warp: int = 32) -> None:
        self._threads = tree.count
        self._warp = warp
        self._axes = tree.threads
        self._analyzer = tirx.Analyzer()
        self._known: dict[tuple[int, int], Level] = {}
        self._alive: list[tuple[Access, Access]] = []
        # Loop variables of constant range, by variable.
        self.ranges: dict[Any, range] = {}
        self.queries = 0

    def level(self, x: Access, y: Access) -> Level:
        """Which threads may meet in what `x` and `y` touch. Both speak of the same iteration of
        the loops around both, unless a variable was renamed or shifted in one of them."""
        if x.memory is not y.memory or self._threads == 1:
            return Level.NONE
        key = (id(x), id(y))
        found = self._known.get(key)
        if found is None:
            self._alive.append((x, y))  # so that no id is used twice
            self.queries += 1
            found = self._known[key] = self._level(x, y)
        return found

    def _level(self, x: Access, y: Access) -> Level:
        if x.start is None or y.start is None:
            return _by_homes(x, y)
        try:
            return self._compare(x, y)
        except (Opaque, ValueError):
            return _by_homes(x, y)

    def _compare(self, x: Access, y: Access) -> Level:
        pure_x, mixed_x = self._split(x)
        pure_y, mixed_y = self._split(y)
        span = x.span
        apart = self._analyzer.simplify(_sum(pure_y, pure_x, span))
        if _has_load(apart):
            raise Opaque
        pieces = [apart, *mixed_x, *mixed_y]
        own = {v for v, _ in self._axes}
        own |= {i.var for a in (x, y) for i in a.inner}
        free = [v for v in _variables(pieces) if v not in own]
        # Conditions count where they let their variables be enumerated; values that stand for
        # others must not decide them otherwise.
        known: list[Any] = []
        for guard in {id(g): g for g in (*x.guards, *y.guards)}.values():
            named = [v for v in _variables([guard]) if v not in own]
            if all(self._values_of(v, [*pieces, guard]) is not None for v in (*free, *named)):
                free += [v for v in named if v not in free]
                pieces.append(guard)
                known.append(guard)
        worst = Level.NONE
        for case in self._cases(free, pieces):
            if not _may_happen(known, case):
                continue
            shift = int(evaluate(apart, case, {}))
            found = self._meet(
                self._touched(x, mixed_x, case, 0, known),
                self._touched(y, mixed_y, case, shift, known),
            )
            worst = max(worst, found)
            if worst is Level.BLOCK:
                break
        return worst

    def _split(self, a: Access) -> tuple[list[tuple[int, Any]], list[Any]]:
        """The signed addends of a place that no thread or inner loop moves, and the others."""
        own = {v for v, _ in self._axes} | {i.var for i in a.inner}
        pure: list[tuple[int, Any]] = []
        mixed: list[Any] = []
        for sign, term in _addends(a.start, 1):
            if any(v in own for v in collect(term, tirx.Var)):
                mixed.append(term if sign > 0 else _negated(term))
            else:
                pure.append((sign, term))
        return pure, mixed

    def _cases(self, free: Sequence[Any], pieces: Sequence[Any]) -> Iterator[dict[Any, int]]:
        """Values of the variables in `free` that stand for all others."""
        options: list[range] = []
        for var in free:
            known = self._values_of(var, pieces)
            if known is None:
                raise Opaque
            options.append(known)
        if math.prod(len(o) for o in options) > _MOST_CASES:
            raise Opaque
        for values in itertools.product(*options):
            yield dict(zip(free, values, strict=True))

    def _values_of(self, var: Any, pieces: Sequence[Any]) -> range | None:
        whole = self.ranges.get(var)
        steps: int | None = 1
        for piece in pieces:
            own = period(piece, var)
            steps = None if own is None or steps is None else math.lcm(steps, own)
        if steps is not None and (whole is None or steps < len(whole)):
            return range(steps)
        return whole if whole is not None and len(whole) <= _MOST_RANGE else None

    def _touched(
        self, a: Access, mixed: Sequence[Any], case: Mapping[Any, int], shift: int,
        known: Sequence[Any],
    ) -> tuple[Any, Any, int]:  # fmt: skip
        """Start, thread and width of every touch; starts are relative to the shared addends."""
        sizes = [self._threads, *(len(self._inner_range(i, mixed)) for i in a.inner)]
        if math.prod(sizes) * a.width > _MOST_PLACES:
            raise Opaque
        values: dict[Any, Any] = dict(case)
        number = np.arange(self._threads).reshape([-1, *[1] * len(a.inner)])
        rest = number
        for var, extent in self._axes:
            values[var] = rest % extent
            rest = rest // extent
        for n, inner in enumerate(a.inner):
            turns = self._inner_range(inner, mixed)
            shape = [1] * (len(a.inner) + 1)
            shape[n + 1] = -1
            values[inner.var] = np.arange(turns.start, turns.stop).reshape(shape)
        starts = np.full(sizes, shift, dtype=np.int64)
        for term in mixed:
            starts = starts + evaluate(term, values, {})
        mask = np.ones(sizes, dtype=bool)
        # By identity: == between expressions builds a comparison.
        usable = {id(g) for g in known}
        for guard in (g for g in a.guards if id(g) in usable):
            try:
                mask = mask & np.asarray(evaluate(guard, values, {}), dtype=bool)
            except Opaque:
                continue  # it may hold
        threads = np.broadcast_to(number, sizes)
        return starts[mask], threads[mask], a.width

    def _inner_range(self, inner: Any, mixed: Sequence[Any]) -> range:
        low = build.int_value(inner.low)
        if inner.extent is not None and low is not None:
            return range(low, low + inner.extent)
        steps: int | None = 1
        for term in mixed:
            own = period(term, inner.var)
            steps = None if own is None or steps is None else math.lcm(steps, own)
        if steps is None:
            raise Opaque
        return range(steps)

    def _meet(self, x: tuple[Any, Any, int], y: tuple[Any, Any, int]) -> Level:
        if not len(x[0]) or not len(y[0]):
            return Level.NONE
        low = min(int(x[0].min()), int(y[0].min()))
        high = max(int(x[0].max()) + x[2], int(y[0].max()) + y[2])
        unit = math.gcd(x[2], y[2])
        for starts, _, _ in (x, y):
            unit = math.gcd(unit, int(np.gcd.reduce(starts - low)))
        size = (high - low) // unit
        if size > _MOST_PLACES:
            raise Opaque
        one, other = (self._owners(t, low, unit, size) for t in (x, y))
        both = (one.thread >= 0) & (other.thread >= 0)
        apart = both & (one.several | other.several | (one.thread != other.thread))
        if not apart.any():
            return Level.NONE
        warps = apart & (one.several_warps | other.several_warps | (one.warp != other.warp))
        return Level.BLOCK if warps.any() else Level.WARP

    def _owners(self, t: tuple[Any, Any, int], low: int, unit: int, size: int) -> _Touched:
        starts, threads, width = t
        units = ((starts - low) // unit)[:, None] + np.arange(width // unit)[None, :]
        who = np.broadcast_to(threads[:, None], units.shape).ravel()
        units = units.ravel()
        thread, several = _last(units, who, size)
        warp, several_warps = _last(units, who // self._warp, size)
        return _Touched(low, thread, several, warp, several_warps)


def are_apart(x: Access, y: Access) -> bool:
    """Whether two accesses never meet, wherever in their buffers they are."""
    if x.home is None or y.home is None:
        return False
    return x.home[1] <= y.home[0] or y.home[1] <= x.home[0]


def _by_homes(x: Access, y: Access) -> Level:
    return Level.NONE if are_apart(x, y) else Level.BLOCK


def _last(places: Any, who: Any, size: int) -> tuple[Any, Any]:
    """Somebody at each place, and whether another is there too."""
    found = np.full(size, -1, dtype=np.int64)
    found[places] = who
    several = np.zeros(size, dtype=bool)
    several[places[found[places] != who]] = True
    return found, several


def _may_happen(guards: Sequence[Any], case: Mapping[Any, int]) -> bool:
    """Whether no condition is certainly false where its variables have these values."""
    for guard in guards:
        try:
            if not evaluate(guard, case, {}):
                return False
        except (Opaque, ValueError):
            continue
    return True


def _addends(e: Any, sign: int) -> Iterator[tuple[int, Any]]:
    """The terms of a sum; a constant factor is carried into it."""
    kind = type(e).__name__
    if kind == "Add":
        yield from _addends(e.a, sign)
        yield from _addends(e.b, sign)
    elif kind == "Sub":
        yield from _addends(e.a, sign)
        yield from _addends(e.b, -sign)
    elif kind == "Mul" and _is_sum(e.a) and build.int_value(e.b) is not None:
        for own, term in _addends(e.a, sign):
            yield own, tirx.Mul(term, e.b, e.span)
    elif kind == "Mul" and _is_sum(e.b) and build.int_value(e.a) is not None:
        for own, term in _addends(e.b, sign):
            yield own, tirx.Mul(term, e.a, e.span)
    else:
        yield sign, e


def _is_sum(e: Any) -> bool:
    return type(e).__name__ in ("Add", "Sub")


def _negated(e: Any) -> Any:
    return tirx.Sub(build.const(0, build.dtype_of(e)), e, e.span)


def _sum(plus: Sequence[tuple[int, Any]], minus: Sequence[tuple[int, Any]], span: Any) -> Any:
    total: Any = build.const(0, "int64")
    for sign, term in [*plus, *((-s, t) for s, t in minus)]:
        wide = build.cast(term, "int64", span)
        node = tirx.Add if sign > 0 else tirx.Sub
        total = node(total, wide, span)
    return total


def _has_load(e: Any) -> bool:
    return bool(collect(e, tirx.TensorLoad) or collect(e, tirx.Call))


def _variables(exprs: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(v for e in exprs for v in collect(e, tirx.Var)))
