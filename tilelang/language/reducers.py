"""Write-only accumulators that all threads contribute to: init, update, finalize."""

from __future__ import annotations

from typing import Any

from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    ScalarLike,
    TileLike,
    declared,
    effect,
    emit_tile,
    extents_text,
    kind_text,
    options,
    refuse_in_parallel,
    require_scope,
    static_int,
    tile,
    trace_of,
)
from tilelang.program import arith, indexing, operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import reject

_USE = "acc = T.alloc_reducer(shape, dtype); T.reducer_init(acc); T.reducer_update(acc[i], v)"


@language_function("tile")
def reducer_init(reducer: Buffer, init: ScalarLike | None = None) -> None:
    """Starts accumulating into a reducer; every element begins at the neutral value.

    Args:
        reducer: from `T.alloc_reducer`; init: start value, combined once into every output.

    >>> T.reducer_init(acc)
    """
    refuse_in_parallel("reducer_init")
    region = _reducer("reducer_init", reducer)
    start = () if init is None else (operators.cast(init, region.dtype),)
    _opened().add(region.buffer)
    emit_tile("reducer_init", (region, *start), {})


@language_function("scalar")
def reducer_update(target: Any, value: ScalarLike) -> None:
    """Contributes `value` to one element, once per iteration of the enclosing `T.Parallel`.

    Args:
        target: an element `acc[i]` of a reducer; value: converted to its dtype.

    >>> T.reducer_update(acc[i], A[i, j])
    """
    region = _reducer("reducer_update", target)
    if any(arith.surely_different(e, 1) for e in region.extents):
        reject(
            "TL116",
            f"`target` of `T.reducer_update` is {kind_text(target)}, not an element",
            help=f"update one element: `T.reducer_update({region.buffer.name}[i], value)`",
        )
    if not trace_of("reducer_update").facts.get("parallel_depth", 0):
        reject(
            "TL187",
            f"`{region.buffer.name}` is updated outside `T.Parallel`",
            label="how often this contributes would depend on the number of threads",
            labels=declared(region),
            help="put the update into `for i in T.Parallel(…)`",
        )
    _require_open("reducer_update", region)
    effect("reducer_update", (region, operators.cast(value, region.dtype)))


@language_function("tile")
def finalize_reducer(
    reducer: Buffer, dst: TileLike | None = None, batch: int = 1, annotations: Any = None
) -> None:
    """Combines the contributions of all threads and writes them to `dst`.

    Args:
        reducer: from `T.alloc_reducer`; dst: fragment or shared tile of the same shape;
        batch: outputs per step of the cross-thread reduction.

    >>> T.finalize_reducer(acc, row_sum)
    """
    refuse_in_parallel("finalize_reducer")
    options("finalize_reducer", annotations)
    count = static_int("finalize_reducer", "batch", batch, 1, 1 << 10)
    region = _reducer("finalize_reducer", reducer)
    if region.buffer.is_reducer:
        _require_open("finalize_reducer", region)
    target: tuple[Region, ...] = ()
    if dst is not None:
        out = tile("finalize_reducer", "dst", dst)
        require_scope("finalize_reducer", "dst", out, (*FRAGMENT, *SHARED, *LOCAL))
        _check_shape(region, out)
        target = (out,)
    elif dict(region.buffer.attrs).get("replication") is None:
        reject(
            "TL113",
            f"`T.finalize_reducer` of `{region.buffer.name}` has no destination",
            labels=declared(region),
            help=f"pass a fragment: `T.finalize_reducer({region.buffer.name}, result)`",
        )
    emit_tile("reducer_finalize", (region, *target), {"batch": count})


def _reducer(function: str, value: Any) -> Region:
    region = indexing.region_of(value)
    if region is None or "replication" not in dict(region.buffer.attrs):
        reject(
            "TL187",
            f"`T.{function}` takes a reducer, got {kind_text(value)}",
            labels=declared(region) if region is not None else (),
            help=_USE,
        )
    return region


def _check_shape(region: Region, out: Region) -> None:
    have, want = out.shape, region.buffer.shape
    if arith.shapes_surely_differ(have, want):
        reject(
            "TL210",
            f"reducer `{region.buffer.name}` is {extents_text(want)}, "
            f"`{out.buffer.name}` is {extents_text(have)}",
            span=out.span,
            labels=declared(region, out),
            help=f"give `{out.buffer.name}` the shape {extents_text(want)}",
        )


def _opened() -> set[Buffer]:
    opened: set[Buffer] = trace_of("reducer_init").facts.setdefault("open_reducers", set())
    return opened


def _require_open(function: str, region: Region) -> None:
    """No path reaches an update before the first `T.reducer_init` of the text."""
    if region.buffer in _opened():
        return
    reject(
        "TL187",
        f"reducer `{region.buffer.name}` is used in `T.{function}` before `T.reducer_init`",
        labels=declared(region),
        help=f"start it with `T.reducer_init({region.buffer.name})`",
    )


FUNCTIONS = (reducer_init, reducer_update, finalize_reducer)
