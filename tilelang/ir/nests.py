"""How is a nest of parallel loops taken apart, and how is one made?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.layout.fragment import Fragment


def opens_nest(s: Any) -> bool:
    """Whether `s` is the outermost loop of a nest whose iterations the threads share."""
    if not isinstance(s, tirx.For):
        return False
    position = s.annotations.get(attrs.PARALLEL)
    return position is not None and int(position) == 0


def nest_loops(loop: Any) -> list[Any]:
    """The loops of a parallel nest, outermost first."""
    rank = int(loop.annotations.get(attrs.PARALLEL_RANK, 1))
    loops = [loop]
    while len(loops) < rank:
        loops.append(loops[-1].body)
    return loops


def nest_extents(loop: Any) -> tuple[int, ...] | None:
    """The extents of a parallel nest, if they are constants."""
    extents = [build.int_value(x.extent) for x in nest_loops(loop)]
    known = tuple(n for n in extents if n is not None)
    return known if len(known) == len(extents) else None


def nest(
    variables: Sequence[tirx.Var],
    extents: Sequence[tirx.Expr | int],
    body: tirx.Stmt,
    span: TirSpan,
    layout: Fragment | None = None,
    every_copy: bool = False,
) -> tirx.Stmt:
    """A nest over `variables`, one iteration of nothing where there are none."""
    if not variables:
        variables, extents = [tirx.Var("once", "int32", span)], [1]
    rank = len(variables)
    for position in reversed(range(rank)):
        said: dict[str, Any] = {attrs.PARALLEL: position, attrs.PARALLEL_RANK: rank}
        if position == 0:
            said |= _said(layout, every_copy)
        extent = extents[position]
        if isinstance(extent, int):
            extent = build.const(extent, build.dtype_of(variables[position]), span)
        body = build.loop(
            variables[position], extent, body, kind="PARALLEL", annotations=said, span=span
        )
    return body


def with_layout(stmt: tirx.Stmt, layout: Fragment | None, span: TirSpan) -> tirx.Stmt:
    """`stmt` as a nest that is spread by `layout`; a plain statement runs once for the block."""
    if not opens_nest(stmt):
        return nest([], [], stmt, span, layout if _is_single(layout) else None)
    if layout is None or nest_extents(stmt) != layout.shape:
        return stmt
    said: Mapping[str, Any] = {**dict(stmt.annotations), **_said(layout, False)}
    return build.loop(
        stmt.loop_var, stmt.extent, stmt.body, kind="PARALLEL", low=stmt.min,
        annotations=said, span=stmt.span,
    )  # fmt: skip


def _is_single(layout: Fragment | None) -> bool:
    return layout is not None and layout.shape == (1,)


def _said(layout: Fragment | None, every_copy: bool) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if layout is not None:
        said[attrs.LOOP_LAYOUT] = attrs.Held(layout)
    if every_copy:
        said[attrs.EVERY_COPY] = True
    return said
