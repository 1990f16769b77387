"""Copies that only start when called: cp.async, TMA and between the blocks of a cluster."""

from __future__ import annotations

from typing import Any

from tilelang.language.catalog import AMPERE, HOPPER, language_function
from tilelang.language.copy_options import EVICTION_POLICIES, copy_options
from tilelang.language.operands import (
    SHARED,
    IntLike,
    TileLike,
    emit_tile,
    integer,
    mbarrier,
    optional_choice,
    options,
    refuse_in_parallel,
    require_scope,
    static_int,
    wrong_scope,
)
from tilelang.language.tile_extents import Side, match_extents, side
from tilelang.program.buffer import Region
from tilelang.program.context import reject
from tilelang.program.expr import Expr


@language_function("tile", targets=AMPERE)
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
    given = copy_options("async_copy", annotations, {
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
        src, dst: tiles, `dst` in shared memory; dst_block: rank of the receiving block;
        cluster_mask: one bit per receiving block;
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
    given = copy_options("copy_cluster", annotations, {
        "eviction_policy": eviction_policy, "coalesced_width": coalesced_width,
        "loop_layout": loop_layout,
    })  # fmt: skip
    emit_tile("copy_cluster", args, {"cluster_mask": cluster_mask, **given})


def _global_and_shared(function: str, first: Side, second: Side) -> None:
    is_global = (first.region.buffer.is_global, second.region.buffer.is_global)
    if is_global[0] == is_global[1]:
        wrong_scope(
            function, "dst", second.region, "TMA moves between global and shared memory",
            help="one side is a tensor in global memory, the other a shared tile",
        )  # fmt: skip
    role, inner = ("dst", second) if is_global[0] else ("src", first)
    require_scope(function, role, inner.region, SHARED)


FUNCTIONS = (async_copy, tma_copy, copy_cluster)
