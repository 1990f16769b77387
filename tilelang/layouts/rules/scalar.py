"""Code outside T.Parallel, which every thread runs for itself.

    if tx == 0:
        tile[5] = 1.0        # the owner of tile[5] must be among the threads that get here
    row = total[0]           # every thread needs a copy

Such code is a loop over the threads that nobody may lay out: iteration `t` is thread `t`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang.layout.constraints import Access, Fixed, Mode, Origin, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import Nest, UniformWrite
from tilelang.layouts.indices import Opaque, evaluate, indices_of
from tilelang.layouts.rules.naming import access_origin
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import accesses
from tilelang.program.buffer import Buffer
from tilelang_diagnostics.model import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True, eq=False)
class Threads:
    """The threads of a group as a loop, made when the first statement needs it."""

    builder: Builder
    axes: tuple[tuple[ex.Var, int], ...]
    nest: Nest | None = None

    def loop(self) -> Nest:
        """The loop over the threads, its layout fixed."""
        if self.nest is None:
            b = self.builder
            origin = Origin("code that every thread runs")
            self.nest = b.nest("threads", (b.threads,), origin)
            layout = Fragment((b.threads,), lambda t: (t, t * 0))
            b.constraints.append(Fixed(self.nest.variable, layout, origin, convertible=False))
        return self.nest

    def values(self) -> dict[ex.Var, NDArray[np.int64]]:
        """Every thread's coordinates, by the axes of the launch."""
        number = np.arange(self.builder.threads) + self.builder.first_thread
        found = {}
        for var, extent in self.axes:
            found[var] = number % extent
            number = number // extent
        return found


def demand(threads: Threads, stmt: st.Stmt, conditions: Sequence[ex.Expr]) -> None:
    """The elements that a statement outside T.Parallel touches."""
    for access in accesses(stmt):
        if not all(arith.constant_value(r.extent) == 1 for r in access.ranges):
            continue
        indices = tuple(r.min for r in access.ranges)
        if access.buffer.is_fragment:
            _fragment(threads, access.buffer, indices, access.kind, access.span, conditions)
        elif access.buffer.is_shared:
            _shared(threads, access.buffer, indices, access.kind, access.span)


def running(threads: Threads, conditions: Sequence[ex.Expr]) -> NDArray[np.bool_]:
    """Which threads may get past the conditions; those that depend on data let all pass."""
    mask = np.ones(threads.builder.threads, dtype=bool)
    values = threads.values()
    for condition in conditions:
        try:
            mask &= np.broadcast_to(np.asarray(evaluate(condition, values), dtype=bool), mask.shape)
        except Opaque:
            continue
    return mask


def _fragment(
    threads: Threads, buffer: Buffer, indices: tuple[ex.Expr, ...], kind: str,
    span: Span | None, conditions: Sequence[ex.Expr],
) -> None:  # fmt: skip
    b = threads.builder
    tile = b.fragment(buffer)
    if tile is None:
        return
    origin = access_origin(buffer, indices, span)
    mask = running(threads, conditions)
    places = _places(threads, indices)
    if kind != "read" and places is not None and mask.any():
        _write(b, tile, places, mask, origin)
    if kind == "write":
        return
    index = None
    if places is not None:
        # A thread that does not get here needs nothing: it reads outside.
        limits = np.array(tile.shape)[:, None]
        outside = (places < 0) | (places >= limits) | ~mask
        index = Layout.from_table(np.where(outside, limits, places))
    nest = threads.loop()
    b.constraints.append(Access(nest.variable, tile, index, Mode.READ, origin))


def _write(
    b: Builder, tile: Variable, places: NDArray[np.int64], mask: NDArray[np.bool_], origin: Origin
) -> None:
    """Each element is written by the threads that name it; remember who, to compare with owners."""
    written = np.unique(places[:, mask], axis=1).T
    for element in written[:64]:
        here = mask & (places == element[:, None]).all(axis=0)
        who = np.nonzero(here)[0]
        at = tuple(int(x) for x in element)
        if all(0 <= x < n for x, n in zip(at, tile.shape, strict=True)):
            b.uniform_writes.append(UniformWrite(tile, at, who, origin))


def _shared(
    threads: Threads, buffer: Buffer, indices: tuple[ex.Expr, ...], kind: str, span: Span | None
) -> None:
    """Lanes that name different elements by their number."""
    axes = {var for var, _ in threads.axes}
    if known_shape(buffer) is None or not any(_depends(i, axes) for i in indices):
        return
    places = _places(threads, indices, others=0)
    if places is None:
        return
    mode = Mode.READ if kind == "read" else Mode.WRITE
    origin = access_origin(buffer, indices, span)
    threads.builder.touch_shared_at(threads.loop(), buffer, places, mode, origin)


def _places(
    threads: Threads, indices: tuple[ex.Expr, ...], others: int | None = None
) -> NDArray[np.int64] | None:
    values = threads.values()
    table = np.empty((len(indices), threads.builder.threads), dtype=np.int64)
    try:
        for row, index in zip(table, indices_of(indices), strict=True):
            row[...] = evaluate(index.base, values, others)
    except Opaque:
        return None
    return table


def _depends(expr: ex.Expr, axes: set[ex.Var]) -> bool:
    from tilelang.layouts.indices import variables_of

    return any(var in axes for var in variables_of((expr,)))
