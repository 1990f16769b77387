"""Reductions of tiles along one dimension."""

from __future__ import annotations

from typing import Any

from tilelang.language import questions, reducers, tile_scan
from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    TileLike,
    axis_of,
    choice,
    declared,
    emit_tile,
    extents_text,
    known,
    options,
    refuse_in_parallel,
    require_scope,
    static_bool,
    static_int,
    tile,
)
from tilelang.program import arith
from tilelang.program.buffer import Region
from tilelang.program.context import reject

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
SCOPES = (*FRAGMENT, *SHARED, *LOCAL)


@language_function("tile")
def reduce(
    buffer: TileLike,
    out: TileLike,
    reduce_type: str,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """Reduces one dimension of a tile; `T.reduce_sum` and its like name the kind.

    Args:
        buffer: tile (.., n, ..) in fragment, shared or local memory; out: the same shape without
        dimension `dim`, or with 1 there; reduce_type: sum, max, min, abssum, absmax, bitand,
        bitor or bitxor; dim: counted from the end when negative; clear: overwrite `out` rather
        than combine with it; batch: outputs per step of a cross-thread reduction.

    >>> T.reduce(acc, row_sum, "sum", dim=1)
    """
    kind = choice("reduce", "reduce_type", reduce_type, KINDS)
    _reduce("reduce", kind, buffer, out, dim, clear, batch, nan_propagate, annotations)


@language_function("tile")
def reduce_sum(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Any = None,
) -> None:
    """Sums along one dimension: `out[i] = sum(buffer[i, :])`.

    Args:
        buffer: tile (.., n, ..); out: its shape without `dim`, or with 1 there;
        clear: overwrite `out` (True) or add to it.

    >>> T.reduce_sum(acc_s, scores_sum, dim=1)
    """
    _reduce("reduce_sum", "sum", buffer, out, dim, clear, batch, False, annotations)


@language_function("tile")
def reduce_max(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """The largest element along one dimension: `out[i] = max(buffer[i, :])`.

    Args:
        buffer: tile (.., n, ..); out: its shape without `dim`, or with 1 there;
        clear: overwrite `out` (True) or keep what is larger there; nan_propagate: a NaN wins
        (float16 and bfloat16).

    >>> T.reduce_max(acc_s, scores_max, dim=1, clear=False)
    """
    _reduce("reduce_max", "max", buffer, out, dim, clear, batch, nan_propagate, annotations)


@language_function("tile")
def reduce_min(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """The smallest element along one dimension: `out[i] = min(buffer[i, :])`.

    Args:
        buffer: tile (.., n, ..); out: its shape without `dim`, or with 1 there;
        clear: overwrite `out` (True) or keep what is smaller there; nan_propagate: a NaN wins
        (float16 and bfloat16).

    >>> T.reduce_min(acc_s, lowest, dim=1)
    """
    _reduce("reduce_min", "min", buffer, out, dim, clear, batch, nan_propagate, annotations)


@language_function("tile")
def reduce_abssum(
    buffer: TileLike, out: TileLike, dim: int = -1, batch: int = 1, annotations: Any = None
) -> None:
    """Sums absolute values along one dimension: `out[i] = sum(abs(buffer[i, :]))`.

    Args:
        buffer: tile (.., n, ..); out: its shape without `dim`, or with 1 there; overwritten.

    >>> T.reduce_abssum(x, norm, dim=1)
    """
    _reduce("reduce_abssum", "abssum", buffer, out, dim, True, batch, False, annotations)


@language_function("tile")
def reduce_absmax(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """The largest absolute value along one dimension: `out[i] = max(abs(buffer[i, :]))`.

    Args:
        buffer: tile (.., n, ..); out: its shape without `dim`, or with 1 there;
        clear: overwrite `out` (True) or keep what is larger there.

    >>> T.reduce_absmax(x, amax, dim=1)
    """
    _reduce("reduce_absmax", "absmax", buffer, out, dim, clear, batch, nan_propagate, annotations)


@language_function("tile")
def reduce_bitand(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Any = None,
) -> None:
    """Bitwise and along one dimension of integers.

    Args:
        buffer: integer tile (.., n, ..); out: its shape without `dim`, or with 1 there.

    >>> T.reduce_bitand(flags, all_flags, dim=1)
    """
    _reduce("reduce_bitand", "bitand", buffer, out, dim, clear, batch, False, annotations)


@language_function("tile")
def reduce_bitor(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Any = None,
) -> None:
    """Bitwise or along one dimension of integers.

    Args:
        buffer: integer tile (.., n, ..); out: its shape without `dim`, or with 1 there.

    >>> T.reduce_bitor(flags, any_flags, dim=1)
    """
    _reduce("reduce_bitor", "bitor", buffer, out, dim, clear, batch, False, annotations)


@language_function("tile")
def reduce_bitxor(
    buffer: TileLike,
    out: TileLike,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    annotations: Any = None,
) -> None:
    """Bitwise exclusive or along one dimension of integers.

    Args:
        buffer: integer tile (.., n, ..); out: its shape without `dim`, or with 1 there.

    >>> T.reduce_bitxor(words, parity, dim=1)
    """
    _reduce("reduce_bitxor", "bitxor", buffer, out, dim, clear, batch, False, annotations)


def _reduce(
    function: str, kind: str, buffer: Any, out: Any, dim: Any, clear: Any, batch: Any,
    nan_propagate: Any, annotations: Any,
) -> None:  # fmt: skip
    refuse_in_parallel(function)
    src, dst = tile(function, "buffer", buffer), tile(function, "out", out)
    given = options(function, annotations)
    for role, region in (("buffer", src), ("out", dst)):
        help = f"copy it into a fragment first: `T.copy({region.buffer.name}[…], fragment)`"
        require_scope(function, role, region, SCOPES, help)
    if kind.startswith("bit") and known(src.dtype) and not src.dtype.is_integer:
        reject(
            "TL236",
            f"`T.{function}` needs integers, `{src.buffer.name}` is {src.dtype}",
            span=src.span,
            labels=declared(src),
            help="bitwise reductions work on int and uint tiles",
        )
    axis = axis_of(function, src, dim)
    if axis is not None:
        axis = _check_output(function, src, dst, axis, explicit=dim)
    emit_tile("reduce", (src, dst), {
        "kind": kind, "dim": axis, "clear": static_bool(function, "clear", clear),
        "batch": _batch(function, given.get("batch", batch)),
        "nan_propagate": static_bool(function, "nan_propagate", nan_propagate),
    })  # fmt: skip


def _check_output(function: str, src: Region, dst: Region, axis: int, explicit: Any) -> int:
    """The reduced axis over all dimensions of `src`, when `dst` has the shape that leaves.

    `dim` counts all dimensions of a region. Where only counting the sliced ones fits the output
    (as NumPy would index), that is what was meant.
    """
    if _output_fits(src, axis, dst):
        return axis
    sliced = [d for d, r in enumerate(src.ranges) if not r.is_point]
    if isinstance(explicit, int) and -len(sliced) <= explicit < len(sliced):
        position = sliced[explicit]
        if _output_fits(src, position, dst):
            return position
    kept = [e for d, e in enumerate(src.extents) if d != axis and not src.ranges[d].is_point]
    expected = extents_text(kept or [1])
    with_one = extents_text([e if d != axis else 1 for d, e in enumerate(src.extents)])
    both = expected if with_one == expected else f"{expected} or {with_one}"
    reject(
        "TL210",
        f"`T.{function}` of `{src.buffer.name}` {extents_text(src.extents)} along dimension {axis} "
        f"gives {both}, `{dst.buffer.name}` is {extents_text(dst.extents)}",
        span=dst.span,
        labels=declared(src, dst),
        help=f"give `{dst.buffer.name}` the shape {expected}, or reduce another dimension",
    )


def _output_fits(src: Region, axis: int, dst: Region) -> bool:
    """Whether `dst` may be `src` without `axis`, or with 1 there; points may be left out."""
    dims = list(enumerate(src.ranges))
    wanted: list[list[Any]] = []
    for ranges in (dims, [(d, r) for d, r in dims if d == axis or not r.is_point]):
        wanted.append([r.extent for d, r in ranges if d != axis])
        wanted.append([r.extent if d != axis else 1 for d, r in ranges])
    sliced = [r.extent for r in dst.ranges if not r.is_point]
    return any(
        not arith.shapes_surely_differ(have, want)
        for have in (list(dst.extents), sliced)
        for want in wanted
    )


def _batch(function: str, batch: Any) -> int | None:
    number = static_int(function, "batch", batch, 1, 1 << 10)
    if number is not None and number & (number - 1):
        reject(
            "TL117",
            f"`batch={number}` of `T.{function}` is not a power of two",
            help=f"use {1 << number.bit_length() - 1} or {1 << number.bit_length()}",
        )
    return number


FUNCTIONS = (
    reduce, reduce_sum, reduce_max, reduce_min, reduce_abssum, reduce_absmax, reduce_bitand,
    reduce_bitor, reduce_bitxor, *tile_scan.FUNCTIONS, *reducers.FUNCTIONS,
    *questions.FUNCTIONS,
)  # fmt: skip
