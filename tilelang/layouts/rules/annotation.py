"""T.annotate_layout: the author's own layout, which nothing may convert.

Its form is checked for every target by `checks.explicit_layouts`; here it is taken as given.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilelang.layout.constraints import Fixed, Origin
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layouts.builder import Builder
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer
from tilelang.program.stmt import Annotate

KEY = "layout"


def demand(b: Builder, stmt: Annotate) -> None:
    """Fix the layout of each buffer of the annotation."""
    for buffer, layout in given(stmt).items():
        origin = Origin(f"T.annotate_layout of {buffer.name}", stmt.span)
        if isinstance(layout, Fragment):
            var = b.fragment(buffer)
            if var is not None and var.shape == layout.shape:
                b.constraints.append(Fixed(var, layout, origin, convertible=False))
        elif buffer.is_shared and storage(buffer) is buffer:
            b.fixed_shared.setdefault(buffer, (layout, origin))


def given(stmt: Annotate) -> dict[Buffer, Layout | Fragment]:
    """The layouts of an annotation, as far as they are known."""
    if stmt.key != KEY or not isinstance(stmt.value, Mapping):
        return {}
    return {b: what for b, what in stmt.value.items() if isinstance(what, Layout | Fragment)}
