"""Moving tiles: copy, window gather, transpose, fill and clear."""

from __future__ import annotations

from typing import Any

from tilelang.language import async_copies
from tilelang.language.catalog import language_function
from tilelang.language.copy_options import EVICTION_POLICIES, copy_options
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    IntLike,
    ScalarLike,
    TileLike,
    declared,
    emit_tile,
    extents_text,
    integer,
    optional_choice,
    options,
    refuse_in_parallel,
    require_scope,
    static_int,
    tile,
    trace_of,
)
from tilelang.language.tile_extents import Side, match_extents, side
from tilelang.program import arith, operators
from tilelang.program.buffer import Region
from tilelang.program.context import reject
from tilelang.program.expr import Expr, Load
from tilelang.program.stmt import Store


@language_function("tile")
def copy(
    src: TileLike,
    dst: TileLike,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """Moves a tile from `src` to `dst`, converting the dtype; done when the call returns.

    An element `A[i, j]` is the origin of a tile as large as the other side. Reads outside a tensor
    give 0 (or `T.annotate_safe_value`), writes outside are dropped.

    Args:
        src, dst: buffer, region `A[i:i + n, :]` or element, of any dtypes;
        coalesced_width: widest vector in elements; disable_tma: never use TMA;
        eviction_policy: evict_normal, evict_first or evict_last (L2 hint);
        prefer_instruction: tma, cp_async or sync;
        loop_layout: a `T.Fragment` that says which thread moves which element.

    >>> T.copy(A[by * block_M, k * block_K], A_shared)
    """
    given = copy_options("copy", annotations, {
        "coalesced_width": coalesced_width, "disable_tma": disable_tma,
        "eviction_policy": eviction_policy, "prefer_instruction": prefer_instruction,
        "loop_layout": loop_layout,
    })  # fmt: skip
    first, second = side("copy", "src", src), side("copy", "dst", dst)
    if first.is_element and second.is_element:
        _store_element(second.region, src)
        return
    refuse_in_parallel("copy")
    _refuse_overlap("copy", first, second)
    emit_tile("copy", match_extents("copy", first, second), given)


@language_function("tile")
def im2col(
    img: TileLike,
    col: TileLike,
    nhw_step: IntLike,
    c_step: IntLike,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """Gathers a tile of convolution windows, so that a gemm with the filter convolves.

    Args:
        img: tensor (N, H, W, C); col: tile (pixels, kernel * kernel * channels) in shared memory;
        nhw_step: which tile of output pixels; c_step: which tile of window elements;
        kernel, stride, dilation, pad: of the square convolution window.

    >>> T.im2col(data, data_shared, by, k, 3, 1, 1, 1)
    """
    refuse_in_parallel("im2col")
    image, columns = tile("im2col", "img", img), tile("im2col", "col", col)
    for role, region, rank in (("img", image, 4), ("col", columns, 2)):
        if region.buffer.ndim != rank:
            reject(
                "TL201",
                f"`{role}` of `T.im2col` is `{region.buffer.name}` of rank "
                f"{region.buffer.ndim}, not {rank}",
                span=region.span,
                labels=declared(region),
                help="the image is (N, H, W, C), the tile (pixels, window elements)",
            )
    require_scope("im2col", "img", image, ("global",))
    require_scope("im2col", "col", columns, SHARED + FRAGMENT + LOCAL)
    window = {
        "kernel": static_int("im2col", "kernel", kernel, 1, 1 << 10),
        "stride": static_int("im2col", "stride", stride, 1, 1 << 10),
        "dilation": static_int("im2col", "dilation", dilation, 1, 1 << 10),
        "pad": static_int("im2col", "pad", pad, 0, 1 << 10),
    }
    policy = options("im2col", annotations).get("eviction_policy", eviction_policy)
    policy = optional_choice("im2col", "eviction_policy", policy, EVICTION_POLICIES)
    steps = (integer("im2col", "nhw_step", nhw_step), integer("im2col", "c_step", c_step))
    emit_tile("im2col", (image, columns, *steps), {**window, "eviction_policy": policy})


@language_function("tile")
def transpose(src: TileLike, dst: TileLike, annotations: Any = None) -> None:
    """Copies with the last two dimensions swapped: `dst[..., j, i] = src[..., i, j]`.

    Args:
        src: tile (..., M, N); dst: tile (..., N, M), any dtypes.

    >>> T.transpose(A_shared, At_shared)
    """
    refuse_in_parallel("transpose")
    options("transpose", annotations)
    first, second = side("transpose", "src", src), side("transpose", "dst", dst)
    a, b = first.region, second.region
    if a.buffer.ndim < 2 or a.buffer.ndim != b.buffer.ndim:
        reject(
            "TL214",
            f"`T.transpose` of `{first.name}` (rank {a.buffer.ndim}) into "
            f"`{second.name}` (rank {b.buffer.ndim})",
            labels=declared(a, b),
            help="both tiles have the same rank, at least 2",
        )
    swapped = (*a.extents[:-2], a.extents[-1], a.extents[-2])
    if arith.shapes_surely_differ(swapped, b.extents):
        reject(
            "TL214",
            f"`T.transpose` of `{first.name}` {extents_text(a.extents)} needs a destination "
            f"{extents_text(swapped)}, `{second.name}` is {extents_text(b.extents)}",
            span=b.span,
            labels=declared(a, b),
            help=f"allocate `{second.name}` with the shape {extents_text(swapped)}",
        )
    _refuse_overlap("transpose", first, second)
    emit_tile("transpose", (a, b), {})


@language_function("tile")
def fill(buffer: TileLike, value: ScalarLike, annotations: Any = None) -> None:
    """Sets every element of a buffer, region or element to `value`.

    Args:
        buffer: any tile; value: number or expression, converted to the dtype of the tile.

    >>> T.fill(scores_max, -T.infinity("float32"))
    """
    options("fill", annotations)
    _fill("fill", buffer, value)


@language_function("tile")
def clear(buffer: TileLike, annotations: Any = None) -> None:
    """Sets every element of a buffer, region or element to 0.

    Args:
        buffer: any tile.

    >>> T.clear(C_local)
    """
    options("clear", annotations)
    _fill("clear", buffer, 0)


def _fill(function: str, buffer: Any, value: Any) -> None:
    region = tile(function, "buffer", buffer)
    stored = operators.cast(value, region.dtype)
    if isinstance(buffer, Load):
        _store(region, stored)
        return
    refuse_in_parallel(function)
    emit_tile("fill", (region, stored), {})


def _store_element(target: Region, value: Any) -> None:
    """Both sides are elements: an ordinary store with a cast."""
    _store(target, operators.cast(value, target.dtype))


def _store(target: Region, value: Expr) -> None:
    trace = trace_of("copy")
    indices = tuple(r.min for r in target.ranges)
    trace.emit(Store(target.buffer, indices, value, **trace.position()))


def _refuse_overlap(function: str, first: Side, second: Side) -> None:
    """Shifting a tile within one buffer reads elements that the same operation overwrites."""
    a, b = first.region, second.region
    if a.buffer is not b.buffer or first.is_element or second.is_element:
        return
    gaps = [arith.constant_value(x.min - y.min) for x, y in zip(a.ranges, b.ranges, strict=True)]
    same = all(gap == 0 for gap in gaps)
    if same and function == "copy":
        return
    for gap, x, y in zip(gaps, a.ranges, b.ranges, strict=True):
        reach = arith.constant_value(y.extent if (gap or 0) >= 0 else x.extent)
        if gap is None or reach is None or abs(gap) >= reach:
            return
    reject(
        "TL246",
        f"`T.{function}` reads and writes overlapping parts of `{first.name}`",
        span=b.span,
        labels=declared(a),
        help=f"go through a second buffer of shape {extents_text(b.extents)}",
    )


FUNCTIONS = (copy, im2col, transpose, fill, clear, *async_copies.FUNCTIONS)
