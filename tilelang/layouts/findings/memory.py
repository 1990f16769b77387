"""Does global memory move more than it must, and are given widths possible? (TL601, TL602,
TL604)"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import GlobalUse, WidthLimit
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

SECTOR = 32  # bytes, the unit in which memory moves
WORD, VECTOR = 32, 128  # bits: what memory moves at least for a thread, and at most
FEW = 32  # iterations: below a warp's worth, there is nothing to coalesce


def check(solved: Solved) -> Iterator[Diagnostic]:
    """Strided accesses, and vectors wider than a thread can move."""
    for builder, _ in solved.groups:
        yield from _strided(builder)
        yield from _element_by_element(builder)
        for width in builder.widths:
            if width.given > width.widest:
                yield _clamped(width)


def _strided(b: Builder) -> Iterator[Diagnostic]:
    seen: set[tuple[Buffer, object]] = set()
    for use in b.global_uses:
        stride = _fast_stride(use)
        if stride is None or stride < 2 or (use.buffer, use.origin.span) in seen:
            continue
        # Several reads of one iteration may use what lies between.
        together = sum(
            other.nest is use.nest and other.buffer is use.buffer for other in b.global_uses
        )
        if together < stride:
            seen.add((use.buffer, use.origin.span))
            yield _remark(use, stride)


def _fast_stride(use: GlobalUse) -> int | None:
    """The smallest step in memory between iterations; None when it is not known."""
    steps = [s for s, n in zip(use.strides, use.nest.extents, strict=True) if n > 1]
    inner = use.inner
    if any(s is None for s in (*steps, *inner)) or math.prod(use.nest.extents) < FEW:
        return None
    known = [abs(s) for s in (*steps, *inner) if s]
    return min(known, default=None)


def _remark(use: GlobalUse, stride: int) -> Diagnostic:
    name, size = use.buffer.name, max(1, use.buffer.dtype.bits // 8)
    wasted = 1 - size / min(SECTOR, stride * size)
    labels = (
        ()
        if use.buffer.span is None
        else (Label(use.buffer.span, f"`{name}` has no unit stride along an axis of this access"),)
    )
    return make_diagnostic(
        "TL601",
        f"neighbours along the fastest axis of `{name}` lie {stride} elements apart, which wastes "
        f"{wasted:.0%} of the memory traffic",
        span=use.origin.span,
        label=f"every element of {size} bytes takes a sector of {SECTOR}"
        if stride * size >= SECTOR
        else f"uses {size} of every {stride * size} bytes",
        labels=labels,
        help=f"store `{name}` with unit stride along one of these axes, or take a tile that spans "
        "the axis of stride 1",
    )


def _element_by_element(b: Builder) -> Iterator[Diagnostic]:
    """Copies of less than a word per access, along a contiguous axis that has more."""
    seen: set[object] = set()
    for use in b.global_uses:
        bits = use.buffer.dtype.bits
        rows = [n for s, n in zip(use.strides, use.nest.extents, strict=True) if s == 1]
        wide = use.width is not None and use.width * bits >= WORD
        if use.nest.kind != "operation" or wide or use.width is None or not rows:
            continue
        if math.prod(use.nest.extents) < FEW or max(rows) * bits < WORD or use.origin.span in seen:
            continue
        seen.add(use.origin.span)
        vector = VECTOR // bits
        yield make_diagnostic(
            "TL602",
            f"`{use.buffer.name}` is moved {use.width * bits // 8} bytes at a time where 16 would "
            f"do: {use.because}",
            span=use.origin.span,
            labels=()
            if use.buffer.span is None
            else (Label(use.buffer.span, f"`{use.buffer.name}`"),),
            help=f"let tiles and rows begin at multiples of {vector} elements, or pad the rows of "
            f"`{use.buffer.name}`",
        )


def _clamped(width: WidthLimit) -> Diagnostic:
    return make_diagnostic(
        "TL604",
        f"coalesced_width={width.given} of {width.origin.op} is clamped to {width.widest}: "
        f"{width.because}",
        span=width.origin.span,
        help=f"write coalesced_width={width.widest}, or leave it out",
    )
