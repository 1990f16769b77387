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
from tilelang.analysis.shared_accesses import Access, LaunchTree, Loop
from tilelang.ir import build, tirx
from tilelang.ir.index_values import Opaque, evaluate
from tilelang.ir.visit import collect
from tilelang.layout.lazy import np

_MOST_CASES: Final = 256
_MOST_TOGETHER: Final = 1 << 14
_MOST_SHIFTS: Final = 128
_MOST_SPENT: Final = 8192  # looks at values of such loops, in one launch: about a second
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
        self._worst = Level.BLOCK if self._threads > warp else Level.WARP
        self._axes = tree.threads
        self._analyzer = tirx.Analyzer()
        self._known: dict[tuple[int, int], Level] = {}
        self._alive: list[tuple[Access, Access]] = []
        # What loop variables may be, and between which limits, where those are no constants.
        self.ranges: dict[Any, range] = {}
        self.limits: dict[Any, tuple[Any, ...]] = {}
        self.queries = 0
        self._spent = 0

    def bound(self, loop: Loop) -> None:
        """Note what the variable of a loop may be, whose limits are those of other variables."""
        named = _variables([loop.low, loop.extent])
        known = {v: self.ranges[v] for v in named if v in self.ranges}
        if len(known) != len(named) or math.prod(map(len, known.values())) > _MOST_TOGETHER:
            return
        grids = _grids(known)
        try:
            low = np.asarray(evaluate(loop.low, grids, {}))
            stop = low + np.asarray(evaluate(loop.extent, grids, {}))
        except (Opaque, ValueError):
            return
        self.ranges[loop.var] = range(int(low.min()), max(int(low.min()), int(stop.max())))
        end = tirx.Add(loop.low, loop.extent, loop.stmt.span)
        self.limits[loop.var] = (
            tirx.GE(loop.var, loop.low, loop.stmt.span),
            tirx.LT(loop.var, end, loop.stmt.span),
        )

    def simplify(self, expr: Any) -> Any:
        """An expression in few words."""
        return self._analyzer.simplify(expr)

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
        bounded = any(v in self.limits for v in free)
        if bounded and self._spent > _MOST_SPENT:
            raise Opaque
        limits = self._limits_of(free, own)
        limits += [g for g in known if not any(v in own for v in _variables([g]))]
        free += [v for v in _variables(limits) if v not in free]
        # What only shifts the one side against the other needs no look at each of its values.
        masks = [g for g in known if any(v in own for v in _variables([g]))]
        looked_at = set(_variables([*mixed_x, *mixed_y, *masks]))
        worst = Level.NONE
        for case, shifts in self._cases(free, pieces, looked_at, apart, limits):
            try:
                one = self._touched(x, mixed_x, case, masks)
                other = self._touched(y, mixed_y, case, masks)
            except ValueError:
                continue  # a shift by a negative number: there is no such iteration
            self._spent += 1 + len(shifts) if bounded else 0
            for shift in shifts:
                worst = max(worst, self._meet(one, (other[0] + shift, *other[1:])))
                if worst is self._worst:
                    return worst
        return worst

    def _limits_of(self, free: Sequence[Any], own: set[Any]) -> list[Any]:
        """What is known of the variables besides their ranges, in terms of such variables."""
        return [
            limit for var in free for limit in self.limits.get(var, ())
            if all(v in self.ranges and v not in own for v in _variables([limit]))
        ]  # fmt: skip

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

    def _cases(
        self, free: Sequence[Any], pieces: Sequence[Any], looked_at: set[Any], apart: Any,
        limits: Sequence[Any],
    ) -> Iterator[tuple[dict[Any, int], list[int]]]:  # fmt: skip
        """Values that stand for all others, of the variables that are looked at one by one, and
        how far apart the two sides are for all values of the others."""
        one_by_one: dict[Any, range] = {}
        together: dict[Any, range] = {}
        for var in free:
            known = self._values_of(var, [*pieces, *limits])
            if known is None:
                raise Opaque
            (one_by_one if var in looked_at else together)[var] = known
        sizes = [len(o) for o in together.values()]
        count = math.prod(len(o) for o in one_by_one.values())
        if count > _MOST_CASES or math.prod(sizes) > _MOST_TOGETHER:
            raise Opaque
        grids = _grids(together)
        for values in itertools.product(*one_by_one.values()):
            case = dict(zip(one_by_one, values, strict=True))
            possible = np.ones(sizes, dtype=bool)
            for limit in limits:
                possible = possible & _holds(limit, {**case, **grids})
            if not possible.any():
                continue
            try:
                shifts = np.broadcast_to(np.asarray(evaluate(apart, {**case, **grids}, {})), sizes)
            except ValueError:
                continue  # a shift by a negative number: there is no such iteration
            found = np.unique(shifts[possible])
            if len(found) * count > _MOST_SHIFTS:
                raise Opaque
            yield case, [int(n) for n in found]

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
        self, a: Access, mixed: Sequence[Any], case: Mapping[Any, int], known: Sequence[Any]
    ) -> tuple[Any, Any, int]:
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
        starts = np.zeros(sizes, dtype=np.int64)
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


def _grids(ranges: Mapping[Any, range]) -> dict[Any, Any]:
    """All combinations of the values of variables, one axis each."""
    axes = range(len(ranges))
    return {
        var: np.arange(o.start, o.stop).reshape([-1 if n == axis else 1 for axis in axes])
        for n, (var, o) in enumerate(ranges.items())
    }


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


def _holds(condition: Any, values: Mapping[Any, Any]) -> Any:
    """Where a condition may hold, for all these values at once."""
    try:
        return np.asarray(evaluate(condition, values, {}), dtype=bool)
    except (Opaque, ValueError):
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
