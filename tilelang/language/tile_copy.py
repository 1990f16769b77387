"""Moving tiles: copies of every kind, transpose, fill and clear."""

from __future__ import annotations

from typing import Any

from tilelang.language.catalog import HOPPER, language_function
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    IntLike,
    ScalarLike,
    TileLike,
    choice,
    declared,
    emit_tile,
    extents_text,
    integer,
    mbarrier,
    optional_choice,
    options,
    refuse_in_parallel,
    require_scope,
    static_bool,
    static_int,
    tile,
    trace_of,
    wrong_scope,
)
from tilelang.language.tile_extents import Side, match_extents, side
from tilelang.program import arith, operators
from tilelang.program.buffer import Region
from tilelang.program.context import reject, warn
from tilelang.program.expr import Expr, Load
from tilelang.program.stmt import Store
from tilelang_diagnostics.model import Severity
from tilelang_diagnostics.suggest import did_you_mean

EVICTION_POLICIES = ("evict_normal", "evict_first", "evict_last")
COPY_INSTRUCTIONS = ("tma", "cp_async", "sync")
MAX_COALESCED = 1 << 10


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
    given = _copy_options("copy", annotations, {
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


@language_function("tile", targets=("cuda:sm_80", "hip:gfx950"))
def async_copy(
    src: TileLike,
    dst: TileLike,
    *,
    coalesced_width: int | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """Starts a copy from global to shared memory and does not wait (PTX ISA, cp.async).

    Args:
        src: tile in global memory; dst: tile in shared memory of the same dtype;
        coalesced_width: widest vector in elements.

    >>> T.async_copy(A[by * block_M, 0], A_shared)
    """
    refuse_in_parallel("async_copy")
    first, second = side("async_copy", "src", src), side("async_copy", "dst", dst)
    help = "it copies from global to shared memory; everything else is `T.copy`"
    require_scope("async_copy", "src", first.region, ("global",), help)
    require_scope("async_copy", "dst", second.region, SHARED, help)
    given = _copy_options("async_copy", annotations, {
        "coalesced_width": coalesced_width, "loop_layout": loop_layout,
    })  # fmt: skip
    emit_tile("async_copy", match_extents("async_copy", first, second), given)


@language_function("tile", targets=HOPPER)
def tma_copy(
    src: TileLike,
    dst: TileLike,
    *,
    barrier: Any = None,
    cluster_mask: int | None = None,
    leader_scope_threads: int | None = None,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """Starts a bulk tensor copy (PTX ISA, cp.async.bulk.tensor) and does not wait.

    Global to shared needs `barrier=`: the bytes are announced to it, the arrive is yours. Shared to
    global commits a store group, see `T.tma_store_wait`.

    Args:
        src, dst: one in global, one in shared memory; barrier: an mbarrier `full[stage]`;
        cluster_mask: blocks of the cluster that receive the tile;
        leader_scope_threads: threads of which one is elected, a multiple of 32.

    >>> T.tma_copy(A[by * block_M, k * block_K], A_shared, barrier=full[0])
    """
    refuse_in_parallel("tma_copy")
    first, second = side("tma_copy", "src", src), side("tma_copy", "dst", dst)
    _global_and_shared("tma_copy", first, second)
    if barrier is None and first.region.buffer.is_global:
        reject(
            "TL113",
            "`T.tma_copy` from global to shared memory needs `barrier=`",
            help="pass the mbarrier that consumers wait for: `barrier=full[stage]`",
        )
    threads = leader_scope_threads
    if threads is not None:
        number = static_int("tma_copy", "leader_scope_threads", threads, 32, 1024)
        if number is not None and number % 32:
            reject("TL117", f"`leader_scope_threads={number}` is not a multiple of 32")
    regions: list[Region] = list(match_extents("tma_copy", first, second))
    if barrier is not None:
        regions.append(mbarrier("tma_copy", "barrier", barrier))
    policy = options("tma_copy", annotations).get("eviction_policy", eviction_policy)
    emit_tile("tma_copy", regions, {
        "cluster_mask": cluster_mask, "leader_scope_threads": threads,
        "eviction_policy": optional_choice(
            "tma_copy", "eviction_policy", policy, EVICTION_POLICIES
        ),
    })  # fmt: skip


@language_function("tile", targets=HOPPER)
def copy_cluster(
    src: TileLike,
    dst: TileLike,
    *,
    dst_block: IntLike | None = None,
    cluster_mask: int | None = None,
    remote_barrier: Any = None,
    eviction_policy: str | None = None,
    coalesced_width: int | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """Copies between the blocks of a cluster (PTX ISA, distributed shared memory).

    With `cluster_mask` one global tile is loaded into the shared memory of several blocks; with
    `dst_block` a shared tile is pushed to that block.

    Args:
        dst_block: rank of the receiving block; cluster_mask: bit per receiving block;
        remote_barrier: mbarrier of the receiver that counts the bytes (with `dst_block`).

    >>> T.copy_cluster(A[by * 128, 0], A_shared, cluster_mask=0b11)
    """
    refuse_in_parallel("copy_cluster")
    if (dst_block is None) == (cluster_mask is None):
        reject(
            "TL117",
            "`T.copy_cluster` takes either `dst_block` or `cluster_mask`",
            help="`cluster_mask` multicasts a load, `dst_block` pushes to one block",
        )
    if remote_barrier is not None and dst_block is None:
        reject("TL117", "`remote_barrier` of `T.copy_cluster` needs `dst_block`")
    first, second = side("copy_cluster", "src", src), side("copy_cluster", "dst", dst)
    require_scope("copy_cluster", "dst", second.region, SHARED)
    args: list[Region | Expr] = list(match_extents("copy_cluster", first, second))
    if dst_block is not None:
        args.append(integer("copy_cluster", "dst_block", dst_block))
    if remote_barrier is not None:
        args.append(mbarrier("copy_cluster", "remote_barrier", remote_barrier))
    given = _copy_options("copy_cluster", annotations, {
        "eviction_policy": eviction_policy, "coalesced_width": coalesced_width,
        "loop_layout": loop_layout,
    })  # fmt: skip
    emit_tile("copy_cluster", args, {"cluster_mask": cluster_mask, **given})


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
    if any(arith.surely_different(x, y) for x, y in zip(swapped, b.extents, strict=True)):
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


def _copy_options(function: str, annotations: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a copy, overridden by `annotations`, each checked."""
    for key, value in options(function, annotations).items():
        name = {"parallel_loop_layout": "loop_layout"}.get(key, key)
        if name in given:
            given[name] = value
        elif name not in ("disable_tma", "eviction_policy", "prefer_instruction"):
            known = ", ".join(given)
            warn(
                "TL117",
                f"`T.{function}` knows no annotation {key!r}{did_you_mean(key, tuple(given))}",
                severity=Severity.WARNING,
                help=f"it knows {known}",
            )
    if given.get("coalesced_width") is not None:
        width = given["coalesced_width"]
        given["coalesced_width"] = static_int(
            function, "coalesced_width", width, 1, MAX_COALESCED
        )
    if "disable_tma" in given:
        given["disable_tma"] = static_bool(function, "disable_tma", given["disable_tma"])
    for key, allowed in (
        ("eviction_policy", EVICTION_POLICIES), ("prefer_instruction", COPY_INSTRUCTIONS),
    ):  # fmt: skip
        if given.get(key) is not None:
            given[key] = choice(function, key, given[key], allowed)
    if given.get("disable_tma") and given.get("prefer_instruction") == "tma":
        reject("TL117", f"`T.{function}` is asked for TMA and told not to use it")
    return given


def _global_and_shared(function: str, first: Side, second: Side) -> None:
    is_global = (first.region.buffer.is_global, second.region.buffer.is_global)
    if is_global[0] == is_global[1]:
        wrong_scope(
            function, "dst", second.region, "TMA moves between global and shared memory",
            help="one side is a tensor in global memory, the other a shared tile",
        )  # fmt: skip
    role, inner = ("dst", second) if is_global[0] else ("src", first)
    require_scope(function, role, inner.region, SHARED)


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


FUNCTIONS = (copy, async_copy, tma_copy, copy_cluster, im2col, transpose, fill, clear)
