"""mbarriers, clusters and programmatic launches: how GPU threads and blocks wait for each other."""

from __future__ import annotations

from typing import Any

from tilelang.language import operands
from tilelang.language.catalog import BLACKWELL, HOPPER, language_function
from tilelang.language.operands import (
    SHARED,
    IntLike,
    effect,
    integer,
    intrinsic,
    require_scope,
    static_int,
    tile,
)
from tilelang.program.buffer import Region
from tilelang.program.context import reject
from tilelang.program.expr import BOOL, INT32, Const, Expr


@language_function("sync", targets=HOPPER)
def mbarrier_wait_parity(mbarrier: Any, parity: IntLike) -> None:
    """Waits until the phase of an mbarrier with this parity is over (PTX ISA, mbarrier.try_wait).

    Args:
        mbarrier: `full[i]`, or a barrier buffer (its first); parity: 0 or 1, or an expression.

    >>> T.mbarrier_wait_parity(full[stage], phase & 1)
    """
    _wait("mbarrier_wait_parity", mbarrier, parity)


@language_function("sync", targets=HOPPER)
def barrier_wait(mbarrier: Any, parity: IntLike) -> None:
    """As `T.mbarrier_wait_parity`.

    Args:
        mbarrier: `full[i]`, or a barrier buffer (its first); parity: 0 or 1, or an expression.

    >>> T.barrier_wait(full[stage], phase & 1)
    """
    _wait("barrier_wait", mbarrier, parity)


@language_function("sync", targets=HOPPER)
def mbarrier_arrive(mbarrier: Any, cta_id: IntLike | None = None) -> None:
    """Arrives once at an mbarrier, here or in another block of the cluster (mbarrier.arrive).

    Args:
        mbarrier: `empty[i]`, or a barrier buffer (its first); cta_id: rank of the peer block,
        for cluster barriers.

    >>> T.mbarrier_arrive(empty[stage])
    """
    _arrive("mbarrier_arrive", mbarrier, cta_id)


@language_function("sync", targets=HOPPER)
def barrier_arrive(mbarrier: Any, cta_id: IntLike | None = None) -> None:
    """As `T.mbarrier_arrive`.

    Args:
        mbarrier: `empty[i]`, or a barrier buffer (its first); cta_id: rank of the peer block.

    >>> T.barrier_arrive(empty[stage])
    """
    _arrive("barrier_arrive", mbarrier, cta_id)


@language_function("sync", targets=HOPPER)
def mbarrier_expect_tx(mbarrier: Any, tx: IntLike) -> None:
    """Announces bytes that the current phase also waits for (PTX ISA, mbarrier.expect_tx).

    Args:
        mbarrier: `full[i]`, or a barrier buffer (its first); tx: number of bytes.

    >>> T.mbarrier_expect_tx(full[stage], block_M * block_K * 2)
    """
    _expect("mbarrier_expect_tx", mbarrier, tx)


@language_function("sync", targets=HOPPER)
def mbarrier_arrive_expect_tx(mbarrier: Any, tx: IntLike) -> None:
    """Announces bytes and arrives once (PTX ISA, mbarrier.arrive.expect_tx).

    Args:
        mbarrier: `full[i]`, or a barrier buffer (its first); tx: number of bytes.

    >>> T.mbarrier_arrive_expect_tx(full[stage], block_M * block_K * 2)
    """
    _expect("mbarrier_arrive_expect_tx", mbarrier, tx)


@language_function("sync", targets=HOPPER)
def ptx_arrive_barrier(barrier_id: Any) -> None:
    """Arrives once at an mbarrier (PTX ISA, mbarrier.arrive).

    Args:
        barrier_id: an mbarrier.

    >>> T.ptx_arrive_barrier(full[0])
    """
    _arrive("ptx_arrive_barrier", barrier_id, None)


@language_function("sync", targets=HOPPER)
def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: IntLike) -> None:
    """Initialises an mbarrier by hand (PTX ISA, mbarrier.init); `T.alloc_barrier` does it for you.

    Args:
        barrier_id: an mbarrier; thread_count: arrivals that complete a phase.

    >>> T.ptx_init_barrier_thread_count(full[0], 128)
    """
    name = "ptx_init_barrier_thread_count"
    count = integer(name, "thread_count", thread_count)
    if isinstance(count, Const) and not 1 <= count.value < 1 << 20:
        reject("TL511", f"an arrive count of {count.value} is outside 1 … {(1 << 20) - 1}")
    effect(name, (mbarrier_of(name, barrier_id), count))


@language_function("sync", targets=HOPPER)
def ptx_fence_barrier_init() -> None:
    """Makes initialised mbarriers visible to the cluster (PTX ISA, fence.mbarrier_init).

    >>> T.ptx_fence_barrier_init()
    """
    effect("ptx_fence_barrier_init")


@language_function("sync", targets=HOPPER)
def cp_async_barrier_noinc(barrier: Any) -> None:
    """Arrives at an mbarrier when this thread's cp.async are done (cp.async.mbarrier.arrive.noinc).

    Args:
        barrier: an mbarrier.

    >>> T.cp_async_barrier_noinc(full[stage])
    """
    effect("cp_async_barrier_noinc", (mbarrier_of("cp_async_barrier_noinc", barrier),))


@language_function("sync", targets=HOPPER)
def fence_proxy_async() -> None:
    """Orders ordinary shared-memory writes before TMA and WGMMA reads (PTX ISA, fence.proxy.async).

    >>> T.fence_proxy_async()
    """
    effect("fence_proxy_async")


@language_function("sync", targets=HOPPER)
def cluster_arrive(relaxed: bool = False) -> None:
    """Arrives at the barrier of the cluster without waiting (PTX ISA, barrier.cluster.arrive).

    Args:
        relaxed: do not order memory.

    >>> T.cluster_arrive()
    """
    effect("cluster_arrive", (), relaxed=bool(relaxed))


@language_function("sync", targets=HOPPER)
def cluster_wait() -> None:
    """Waits for the barrier of the cluster (PTX ISA, barrier.cluster.wait).

    >>> T.cluster_wait()
    """
    effect("cluster_wait")


@language_function("sync", targets=HOPPER)
def cluster_sync() -> None:
    """Waits until all threads of all blocks of the cluster are here.

    >>> T.cluster_sync()
    """
    effect("cluster_sync")


@language_function("thread", targets=HOPPER)
def block_rank_in_cluster() -> Expr:
    """The rank of this block in its cluster (PTX ISA, %cluster_ctarank); int32.

    >>> rank = T.block_rank_in_cluster()
    """
    return intrinsic("block_rank_in_cluster", (), INT32)


@language_function("thread", targets=HOPPER)
def get_cluster_id(dim: int = 0) -> Expr:
    """Which cluster of the grid this block is in (PTX ISA, %clusterid); int32.

    Args:
        dim: 0 (x), 1 (y) or 2 (z).

    >>> cx = T.get_cluster_id()
    """
    return _cluster("get_cluster_id", dim)


@language_function("thread", targets=HOPPER)
def get_cluster_dims(dim: int = 0) -> Expr:
    """How many blocks a cluster has along one axis (PTX ISA, %cluster_nctaid); int32.

    Args:
        dim: 0 (x), 1 (y) or 2 (z).

    >>> n = T.get_cluster_dims()
    """
    return _cluster("get_cluster_dims", dim)


@language_function("thread", targets=HOPPER)
def get_cluster_extent(dim: int = 0) -> Expr:
    """How many clusters the grid has along one axis (PTX ISA, %nclusterid); int32.

    Args:
        dim: 0 (x), 1 (y) or 2 (z).

    >>> n = T.get_cluster_extent()
    """
    return _cluster("get_cluster_extent", dim)


@language_function("thread", targets=HOPPER)
def get_cluster_size() -> Expr:
    """How many blocks a cluster has (PTX ISA, %cluster_nctarank); int32.

    >>> n = T.get_cluster_size()
    """
    return intrinsic("get_cluster_size", (), INT32)


@language_function("sync", targets=HOPPER)
def pdl_sync() -> None:
    """Waits for the kernel before this one (PTX ISA, griddepcontrol.wait).

    >>> T.pdl_sync()
    """
    effect("pdl_sync")


@language_function("sync", targets=HOPPER)
def pdl_trigger() -> None:
    """Lets the kernel after this one start (PTX ISA, griddepcontrol.launch_dependents).

    >>> T.pdl_trigger()
    """
    effect("pdl_trigger")


@language_function("sync", targets=BLACKWELL)
def clc_try_cancel(result: Any, mbarrier: Any) -> None:
    """Asks for the next tile of a persistent launch (PTX ISA, clusterlaunchcontrol.try_cancel).

    Args:
        result: 16 bytes in shared memory that receive the answer; mbarrier: counts those bytes.

    >>> T.clc_try_cancel(result, ready[0])
    """
    _try_cancel("clc_try_cancel", result, mbarrier)


@language_function("sync", targets=BLACKWELL)
def clc_try_cancel_multicast(result: Any, mbarrier: Any) -> None:
    """As `T.clc_try_cancel`, the answer goes to all blocks of the cluster.

    Args:
        result: 16 bytes in shared memory; mbarrier: counts those bytes in each block.

    >>> T.clc_try_cancel_multicast(result, ready[0])
    """
    _try_cancel("clc_try_cancel_multicast", result, mbarrier)


@language_function("thread", targets=BLACKWELL)
def clc_is_canceled(result: Any) -> Expr:
    """Whether a tile was handed over (PTX ISA, clusterlaunchcontrol.query_cancel); bool.

    Args:
        result: the answer of `T.clc_try_cancel`.

    >>> if T.clc_is_canceled(result):
    """
    return intrinsic("clc_is_canceled", (_answer("clc_is_canceled", result),), BOOL)


@language_function("thread", targets=BLACKWELL)
def clc_get_first_ctaid_x(result: Any) -> Expr:
    """The x index of the block that was handed over (clusterlaunchcontrol.query_cancel); int32.

    Args:
        result: the answer of `T.clc_try_cancel`.

    >>> bx = T.clc_get_first_ctaid_x(result)
    """
    return intrinsic("clc_get_first_ctaid_x", (_answer("clc_get_first_ctaid_x", result),), INT32)


def mbarrier_of(function: str, value: Any) -> Region:
    """The mbarrier argument of the functions here, which call it by that name."""
    return operands.mbarrier(function, "mbarrier", value)


def _wait(function: str, barrier: Any, parity: Any) -> None:
    phase = integer(function, "parity", parity)
    if isinstance(phase, Const) and phase.value not in (0, 1):
        reject(
            "TL511",
            f"a parity of {phase.value} in `T.{function}` is neither 0 nor 1",
            help="phases alternate: pass `phase & 1`",
        )
    effect("mbarrier_wait_parity", (mbarrier_of(function, barrier), phase))


def _arrive(function: str, barrier: Any, cta_id: Any) -> None:
    args: list[Region | Expr] = [mbarrier_of(function, barrier)]
    if cta_id is not None:
        args.append(integer(function, "cta_id", cta_id))
    effect("mbarrier_arrive", args)


def _expect(function: str, barrier: Any, tx: Any) -> None:
    size = integer(function, "tx", tx)
    if isinstance(size, Const) and not 0 <= size.value < 1 << 20:
        reject("TL511", f"{size.value} bytes in `T.{function}` are outside 0 … {(1 << 20) - 1}")
    effect(function, (mbarrier_of(function, barrier), size))


def _cluster(function: str, dim: Any) -> Expr:
    return intrinsic(function, (), INT32, dim=static_int(function, "dim", dim, 0, 2))


def _try_cancel(function: str, result: Any, barrier: Any) -> None:
    effect(function, (_answer(function, result), mbarrier_of(function, barrier)))


def _answer(function: str, result: Any) -> Region:
    """16 bytes in shared memory."""
    region = tile(function, "result", result)
    require_scope(function, "result", region, SHARED)
    return region


FUNCTIONS = (
    mbarrier_wait_parity, barrier_wait, mbarrier_arrive, barrier_arrive, mbarrier_expect_tx,
    mbarrier_arrive_expect_tx, ptx_arrive_barrier, ptx_init_barrier_thread_count,
    ptx_fence_barrier_init, cp_async_barrier_noinc, fence_proxy_async, cluster_arrive,
    cluster_wait, cluster_sync, block_rank_in_cluster, get_cluster_id, get_cluster_dims,
    get_cluster_extent, get_cluster_size, pdl_sync, pdl_trigger, clc_try_cancel,
    clc_try_cancel_multicast, clc_is_canceled, clc_get_first_ctaid_x,
)  # fmt: skip
