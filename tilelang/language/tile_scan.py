"""Running sums and maxima of tiles."""

from __future__ import annotations

from typing import Any

from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    TileLike,
    axis_of,
    declared,
    emit_tile,
    extents_text,
    options,
    refuse_in_parallel,
    require_scope,
    static_bool,
    tile,
    trace_of,
)
from tilelang.program import arith
from tilelang.program.context import reject
from tilelang_diagnostics.model import Label

# The number of warps that one scan can chain is a power of two.
SCAN_THREADS = (32, 64, 128, 256, 512, 1024)


@language_function("tile")
def cumsum(
    src: TileLike,
    dst: TileLike | None = None,
    dim: int = 0,
    reverse: bool = False,
    annotations: Any = None,
) -> None:
    """Inclusive running sum along one dimension, in place when `dst` is left out.

    Args:
        src: shared or fragment tile; dst: tile of the same shape; reverse: from the end.

    >>> T.cumsum(x_shared, dim=1)
    """
    _scan("cumsum", "sum", src, dst, dim, reverse, annotations)


@language_function("tile")
def cummax(
    src: TileLike,
    dst: TileLike | None = None,
    dim: int = 0,
    reverse: bool = False,
    annotations: Any = None,
) -> None:
    """Inclusive running maximum along one dimension, in place when `dst` is left out.

    Args:
        src: shared or fragment tile; dst: tile of the same shape; reverse: from the end.

    >>> T.cummax(x_shared, peaks, dim=0)
    """
    _scan("cummax", "max", src, dst, dim, reverse, annotations)


def _scan(
    function: str, kind: str, src: Any, dst: Any, dim: Any, reverse: Any, annotations: Any
) -> None:
    refuse_in_parallel(function)
    options(function, annotations)
    source = tile(function, "src", src)
    target = source if dst is None else tile(function, "dst", dst)
    for role, region in (("src", source), ("dst", target)):
        help = f"copy `{region.buffer.name}` into a shared tile first"
        require_scope(function, role, region, (*SHARED, *FRAGMENT, *LOCAL), help)
    axis = axis_of(function, source, dim)
    a, b = ([r.extent for r in x.ranges if not r.is_point] for x in (source, target))
    if arith.shapes_surely_differ(a, b):
        reject(
            "TL212",
            f"`T.{function}` of `{source.buffer.name}` {extents_text(source.extents)} cannot go "
            f"into `{target.buffer.name}` {extents_text(target.extents)}",
            span=target.span,
            labels=declared(source, target),
            help=f"a scan keeps its shape: give `{target.buffer.name}` {extents_text(a)}",
        )
    _check_threads(function)
    emit_tile("scan", (source, target), {
        "kind": kind, "dim": axis, "reverse": static_bool(function, "reverse", reverse),
    })  # fmt: skip


def _check_threads(function: str) -> None:
    """On a GPU the scan goes through warps, whose number must be a power of two."""
    trace = trace_of(function)
    threads = getattr(trace.launch, "thread_count", None)
    if threads is None or trace.target is None or trace.target.startswith("cpu"):
        return
    if threads not in SCAN_THREADS:
        span = getattr(trace.launch, "span", None)
        reject(
            "TL408",
            f"`T.{function}` cannot work with {threads} threads",
            labels=(Label(span, f"launched with {threads} threads"),) if span else (),
            help=f"launch with one of {', '.join(map(str, SCAN_THREADS))} threads",
        )


FUNCTIONS = (cumsum, cummax)
