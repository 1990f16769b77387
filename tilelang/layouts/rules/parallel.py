"""T.Parallel: iterations run where the fragment elements they touch live, and wide along memory.

    for i, j in T.Parallel(64, 64):
        scores[i, j] = T.exp2(scores[i, j] - peak[i])
    # updates scores[i, j], reads peak[i]: each thread needs the peak of its rows

Sequential loops inside belong to each iteration. What is read and written at one index counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilelang.layout.constraints import Fixed, Mode, Origin
from tilelang.layout.fragment import Fragment
from tilelang.layouts.addresses import constant_shape
from tilelang.layouts.ahead import copied_by, prefer_words
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import Nest
from tilelang.layouts.indices import Counter, counter_of, indices_of
from tilelang.layouts.rules.naming import access_origin, written_name
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.accesses import accesses
from tilelang.program.buffer import Buffer
from tilelang_diagnostics.model import Span


@dataclass(slots=True, eq=False)
class _Touched:
    """One element expression of a loop body, and all that happens to it."""

    buffer: Buffer
    indices: tuple[ex.Expr, ...]
    span: Span | None
    counters: tuple[Counter, ...]
    reads: bool = False
    writes: bool = False

    @property
    def mode(self) -> Mode:
        if self.reads and self.writes:
            return Mode.UPDATE
        return Mode.WRITE if self.writes else Mode.READ


@dataclass(slots=True, eq=False)
class _Body:
    """What a loop body touches, in program order."""

    found: dict[object, _Touched] = field(default_factory=dict)

    def touch(
        self, buffer: Buffer, indices: tuple[ex.Expr, ...], span: Span | None, writes: bool,
        counters: tuple[Counter, ...],
    ) -> None:  # fmt: skip
        key = (id(buffer), tuple(arith.structure(i) for i in indices), counters)
        one = self.found.setdefault(key, _Touched(buffer, indices, span, counters))
        if writes:
            one.writes = True
        else:
            one.reads = True


def demand(b: Builder, loop: st.For) -> None:
    """One access per element expression of the body."""
    names = ", ".join(written_name(v.var) for v in loop.loop_vars)
    extents = constant_shape([v.extent for v in loop.loop_vars])
    if extents is None:
        return
    origin = Origin(f"the loop over {names}", loop.span)
    dims = {v.var: d for d, v in enumerate(loop.loop_vars)}
    nest = b.nest(names, extents, origin, "parallel", dims)
    layout = loop.attr("loop_layout")
    if isinstance(layout, Fragment) and layout.shape == extents:
        pinned = Origin(f"loop_layout of {origin.op}", loop.span)
        b.constraints.append(Fixed(nest.variable, layout, pinned, convertible=False))
    width = loop.attr("coalesced_width")
    limit = width if isinstance(width, int) and width > 0 else None
    body = _Body()
    _read_block(loop.body, body, b.counters)
    _add(b, nest, body, limit)
    if b.ahead and (copied := copied_by(loop)) is not None:
        prefer_words(b, nest, *copied)
    memory = [use.buffer.dtype for use in b.global_uses if use.nest is nest]
    if limit is not None and memory:
        b.limit_width(nest, limit, max(memory, key=lambda dtype: dtype.bits), origin)


def _add(b: Builder, nest: Nest, body: _Body, limit: int | None) -> None:
    outer = b.counters
    for one in body.found.values():
        b.counters = one.counters
        origin = access_origin(one.buffer, one.indices, one.span)
        b.touch(nest, one.buffer, indices_of(one.indices), one.mode, origin, limit)
    b.counters = outer


def _read_block(block: st.Block, body: _Body, counters: tuple[Counter, ...]) -> None:
    for stmt in block:
        for access in _elements(stmt):
            body.touch(*access, counters)
        inner = counters
        if isinstance(stmt, st.For):
            counter = counter_of(stmt)
            inner = counters if counter is None else (*counters, counter)
        for nested in st.bodies(stmt):
            _read_block(nested, body, inner)


_Element = tuple[Buffer, tuple[ex.Expr, ...], "Span | None", bool]


def _elements(stmt: st.Stmt) -> Iterator[_Element]:
    """The single elements a statement itself touches."""
    for access in accesses(stmt):
        points = all(arith.constant_value(r.extent) == 1 for r in access.ranges)
        if not points:
            continue  # a region given to an operation on whole tiles, such as `T.any_of`
        indices = tuple(r.min for r in access.ranges)
        if access.kind != "write":
            yield access.buffer, indices, access.span, False
        if access.kind != "read":
            yield access.buffer, indices, access.span, True
