"""Where does an element of a tile live once threads are told apart?

`passes.apply_layouts` writes on each allocation the layout of the tile and the one-dimensional
buffer that will hold it; `homes_of` reads that back. A view leads to the tile it looks at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.ir.visit import collect, storage_roots
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout

FRAGMENT: Final = "local.fragment"
REDUCER: Final = "local.reducer"
MATRIX: Final = "local.matrix"  # elements that the lanes of a warp hold together, out of reach
SHARED: Final = ("shared", "shared.dyn")
PRIVATE: Final = ("local", REDUCER)
INDEX: Final = "int32"


@dataclass(frozen=True, slots=True, eq=False)
class Home:
    """The layout of a tile, and the buffer of one dimension that holds it.

    A Fragment for registers, a Layout for shared memory, None for row-major private memory.
    """

    buffer: tirx.Buffer
    layout: Fragment | Layout | None
    flat: tirx.Buffer

    @property
    def shape(self) -> tuple[int, ...]:
        """The constant extents of the tile."""
        return shape_of(self.buffer)


@dataclass(frozen=True, slots=True, eq=False)
class Homes:
    """The homes of a function, by buffer; `views` are those of one with the same elements."""

    homes: Mapping[tirx.Buffer, Home] = field(default_factory=dict)
    views: Mapping[tirx.Buffer, tirx.Buffer] = field(default_factory=dict)

    def find(self, buffer: tirx.Buffer) -> Home | None:
        """The home of a buffer or of what it views; None for memory that stays as it is."""
        return self.homes.get(self.views.get(buffer, buffer))

    def resolve(
        self, buffer: tirx.Buffer, indices: Sequence[tirx.Expr], span: TirSpan
    ) -> list[tirx.Expr]:
        """The indices in the tile itself of an element of a view."""
        source = self.views.get(buffer)
        if source is None:
            return list(indices)
        position = row_major(indices, shape_of(buffer), span)
        return unflattened(position, shape_of(source), span)

    def fragment(self, buffer: tirx.Buffer) -> Fragment | None:
        """The layout of a tile in registers."""
        home = self.find(buffer)
        return home.layout if home is not None and isinstance(home.layout, Fragment) else None


def homes_of(node: Any) -> Homes:
    """The homes of everything allocated in `node`."""
    homes: dict[Any, Home] = {}
    for stmt in collect(node, tirx.AllocBuffer):
        flat = stmt.annotations.get(attrs.FLAT)
        if flat is not None:
            layout = attrs.unheld(stmt.annotations.get(attrs.TILE_LAYOUT))
            homes[stmt.buffer] = Home(stmt.buffer, layout, flat)
    views = {
        view: root
        for view, root in storage_roots(node).items()
        if root in homes and str(view.dtype) == str(root.dtype)
    }
    return Homes(homes, views)


def allocate_home(
    name: str,
    shape: Sequence[int],
    dtype: str,
    scope: str,
    layout: Fragment | Layout | None,
    span: TirSpan,
) -> tuple[tirx.Stmt, Home]:
    """A new tile with its home; passes and operations need no layout pass for it."""
    extents = [build.const(n, INDEX, span) for n in shape]
    buffer = tirx.decl_buffer(
        extents, dtype, name=name, scope=scope, data_alignment=64, span=span, layout=None
    )
    home = Home(buffer, layout, flat_buffer(buffer, layout, span))
    return build.allocate(buffer, said_of(home), span), home


def said_of(home: Home) -> dict[str, Any]:
    """What the allocation of a home is annotated with."""
    said: dict[str, Any] = {attrs.FLAT: home.flat}
    if home.layout is not None:
        said[attrs.TILE_LAYOUT] = attrs.Held(home.layout)
    return said


def flat_buffer(
    buffer: tirx.Buffer, layout: Fragment | Layout | None, span: TirSpan
) -> tirx.Buffer:
    """The buffer of one dimension that holds `buffer`."""
    scope = str(buffer.scope())
    match layout:
        case Fragment():
            count = layout.slots
        case Layout():
            count = layout.storage
        case None:
            count = math.prod(shape_of(buffer))
    return tirx.decl_buffer(
        [build.const(count, INDEX, span)], str(buffer.dtype), name=str(buffer.name),
        scope="local" if scope in (FRAGMENT, REDUCER) else scope, data_alignment=64,
        span=buffer.span, layout=None,
    )  # fmt: skip


def shape_of(buffer: tirx.Buffer) -> tuple[int, ...]:
    """Its extents, which have to be constants."""
    found = [build.int_value(d) for d in buffer.shape]
    if any(n is None for n in found):
        raise ValueError(f"the extents of {buffer.name} are not constants")
    return tuple(n for n in found if n is not None)


def row_major(indices: Sequence[tirx.Expr], shape: Sequence[int], span: TirSpan) -> tirx.Expr:
    """The row-major position of `indices`."""
    position: tirx.Expr = build.const(0, INDEX, span)
    for index, extent in zip(indices, shape, strict=True):
        index = build.cast(index, INDEX, span)
        if not build.is_int(position, 0):
            position = build.mul(position, build.const(extent, INDEX, span), span)
        position = build.add(position, index, span)
    return position


def unflattened(position: tirx.Expr, shape: Sequence[int], span: TirSpan) -> list[tirx.Expr]:
    """The indices in `shape` at a row-major position."""
    indices: list[tirx.Expr] = []
    for extent in reversed(shape[1:]):
        size = build.const(extent, INDEX, span)
        indices.append(tirx.FloorMod(position, size, span))
        position = tirx.FloorDiv(position, size, span)
    return [position, *reversed(indices)]
