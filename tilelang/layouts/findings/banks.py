"""Which accesses of shared memory collide in its banks? (TL306)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang.layout.constraints import Mode
from tilelang.layout.layout import Layout, index_names
from tilelang.layouts.shared import BankUse, SharedLayout
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

# The least degree worth a remark. A layout that the author gave is told of every conflict; one
# that was chosen as the best of many has its reasons for a pair of lanes that meet here and there.
GIVEN, CHOSEN = 2, 4
_NAMED = ("row-major", "column-major", "permuted", "padded", "overlapping")


def check(solved: Solved) -> Iterator[Diagnostic]:
    """One remark per use that collides."""
    for buffer, layout in solved.shared.items():
        least = CHOSEN if layout.annotation is None else GIVEN
        for use in layout.uses:
            if use.degree >= least:
                yield _remark(buffer, layout, use)


def _remark(buffer: Buffer, layout: SharedLayout, use: BankUse) -> Diagnostic:
    verb = "read" if use.mode is Mode.READ else "written"
    labels = []
    if layout.annotation is not None and layout.annotation.span is not None:
        labels.append(Label(layout.annotation.span, f"`{buffer.name}` is given this layout"))
    elif buffer.span is not None:
        labels.append(Label(buffer.span, f"`{buffer.name}` has the layout {_shown(layout.layout)}"))
    return make_diagnostic(
        "TL306",
        f"{use.degree}-way bank conflicts when `{buffer.name}` is {verb} by {use.origin.op}: "
        f"its layout is {_shown(layout.layout)}",
        span=use.origin.span,
        label=f"{use.degree} lanes of a warp wait for one bank",
        labels=tuple(labels),
        help=_help(buffer, layout),
    )


def _shown(layout: Layout) -> str:
    """By its name (`row-major 64x32`), or else as one writes it for T.annotate_layout."""
    text = str(layout)
    if text.partition(" ")[0] in _NAMED:
        return text
    return f"`lambda {', '.join(index_names(len(layout.shape)))}: {text}`"


def _help(buffer: Buffer, layout: SharedLayout) -> str:
    if layout.annotation is not None:
        return (
            f"leave out the layout of `{buffer.name}` and the compiler swizzles it, or xor row "
            "bits into the column: `lambda i, j: (i, j ^ i)`"
        )
    return f"let neighbouring threads touch neighbouring elements of `{buffer.name}`"
