"""Which operations came with Hopper: mbarriers, bulk copies, warp-group matrix instructions,
clusters?

Sections of the PTX ISA are named by their instruction.
"""

from __future__ import annotations

from typing import Final

from tilelang.ir.device_op import Constant, DeviceOp, Group, Operand
from tilelang.ir.device_rows import scalars

_BARRIER = Operand("barrier", "barrier", "update")
_MAP = Operand("map", "map")
_COORDINATES = scalars("c0", "c1?", "c2?", "c3?", "c4?")  # innermost dimension first
# What L2 should do with the lines: normal, keep, or drop them first.
_EVICTION = Constant("eviction", ("normal", "evict_first", "evict_last"), "normal")

_BLOCK: Final[Group | None] = "block"
_CLUSTER: Final[Group | None] = "cluster"
_NOTHING: Final[Group | None] = None

_MBARRIERS = tuple(
    DeviceOp(
        name, doc, ptx, operands=operands, orders=orders, min_arch=arch,
        header="mbarrier.h",
    )
    for name, doc, ptx, operands, orders, arch in (
        ("mbarrier_init", "a phase is over after `count` arrivals", "mbarrier.init",
         (Operand("barrier", "barrier", "write"), *scalars("count")), _NOTHING, 80),
        ("mbarrier_inval", "the memory of the barrier may be used for something else",
         "mbarrier.inval", (_BARRIER,), _NOTHING, 80),
        ("mbarrier_arrive", "arrive once, here or in block `cta` of the cluster",
         "mbarrier.arrive", (_BARRIER, *scalars("cta?")), _NOTHING, 90),
        ("mbarrier_expect_tx", "the current phase also waits for `bytes`", "mbarrier.expect_tx",
         (_BARRIER, *scalars("bytes")), _NOTHING, 90),
        ("mbarrier_arrive_expect_tx", "announce `bytes` and arrive once",
         "mbarrier.arrive.expect_tx", (_BARRIER, *scalars("bytes")), _NOTHING, 90),
        ("mbarrier_wait_parity", "wait until the phase of this parity is over",
         "mbarrier.try_wait.parity", (_BARRIER, *scalars("parity")), _BLOCK, 90),
        ("cp_async_barrier_noinc", "arrive once this thread's cp_async are done",
         "cp.async.mbarrier.arrive.noinc", (_BARRIER,), _NOTHING, 80),
    )
)  # fmt: skip

_FENCES = tuple(
    DeviceOp(name, doc, section, min_arch=90, header="mbarrier.h")
    for name, doc, section in (
        ("fence_mbarrier_init", "initialised mbarriers are visible to the cluster and to TMA",
         "fence.mbarrier_init"),
        ("fence_proxy_async", "ordinary shared writes come before later TMA and WGMMA reads",
         "fence.proxy.async"),
    )
)  # fmt: skip

_BULK = (
    DeviceOp(
        "tma_load", "start loading a tile of a tensor map; one thread; the bytes arrive at barrier",
        "cp.async.bulk.tensor",
        operands=(
            Operand("dst", "shared", "write", asynchronous=True), _MAP, _BARRIER, *_COORDINATES,
        ),
        constants=(_EVICTION,), min_arch=90, header="tma.h", queue="mbarrier",
    ),
    DeviceOp(
        "tma_load_multicast", "the same, into each block of the cluster that `mask` names",
        "cp.async.bulk.tensor .multicast",
        operands=(
            Operand("dst", "shared", "write", asynchronous=True), _MAP, _BARRIER,
            *scalars("mask"), *_COORDINATES,
        ),
        constants=(_EVICTION,), min_arch=90, max_arch=119, arch_specific=True, header="tma.h",
        queue="mbarrier",
    ),
    DeviceOp(
        "tma_store", "start storing a tile to a tensor map; one thread",
        "cp.async.bulk.tensor",
        operands=(Operand("src", "shared", asynchronous=True), _MAP, *_COORDINATES),
        min_arch=90, header="tma.h", queue="bulk",
    ),
    DeviceOp(
        "tma_reduce_add", "start adding a tile to a tensor map; one thread",
        "cp.reduce.async.bulk.tensor",
        operands=(Operand("src", "shared", asynchronous=True), _MAP, *_COORDINATES),
        min_arch=90, header="tma.h", queue="bulk",
    ),
    DeviceOp(
        "bulk_load", "start copying `bytes`, a multiple of 16, to shared memory; one thread",
        "cp.async.bulk",
        operands=(
            Operand("dst", "shared", "write", asynchronous=True),
            Operand("src", "global", asynchronous=True), _BARRIER, *scalars("bytes"),
        ),
        min_arch=90, header="tma.h", queue="mbarrier",
    ),
    DeviceOp(
        "tma_prefetch", "fetch the descriptor itself", "prefetch.tensormap",
        operands=(_MAP,), min_arch=90, header="tma.h",
    ),
    DeviceOp(
        "bulk_commit", "close a group of this thread's bulk stores",
        "cp.async.bulk.commit_group", min_arch=90, header="tma.h", closes="bulk",
    ),
    DeviceOp(
        "bulk_wait", "wait until at most `groups` groups of bulk stores are pending; with `read`, "
        "only until their sources may be written", "cp.async.bulk.wait_group",
        constants=(Constant("groups"), Constant("read", (False, True), True)),
        min_arch=90, header="tma.h", waits="bulk",
    ),
)  # fmt: skip

_CLUSTERS = (
    *(
        DeviceOp(
            name, doc, "barrier.cluster", constants=constants, group="cluster",
            orders=orders, min_arch=90, header="cluster.h",
        )
        for name, doc, constants, orders in (
            ("cluster_arrive", "arrive at the barrier of the cluster",
             (Constant("relaxed", (False, True), False),), _NOTHING),
            ("cluster_wait", "wait for the barrier of the cluster", (), _CLUSTER),
            ("cluster_sync", "arrive and wait", (), _CLUSTER),
        )
    ),
    *(
        DeviceOp(
            name, doc, "special registers",
            constants=() if name.endswith(("_cluster", "_size")) else (Constant("dim", (0, 1, 2)),),
            result="int32", pure=True, min_arch=90, header="cluster.h",
        )
        for name, doc in (
            ("block_rank_in_cluster", "rank of this block in its cluster"),
            ("get_cluster_id", "index of this cluster in the grid"),
            ("get_cluster_dims", "blocks of a cluster along one axis"),
            ("get_cluster_extent", "clusters of the grid along one axis"),
            ("get_cluster_size", "blocks of a cluster"),
        )
    ),
    DeviceOp("pdl_sync", "wait for the kernel before this one", "griddepcontrol.wait",
             min_arch=90, header="cluster.h"),
    DeviceOp("pdl_trigger", "let the kernel after this one start",
             "griddepcontrol.launch_dependents", min_arch=90, header="cluster.h"),
    DeviceOp(
        "set_max_nreg", "give this warp group `reg_count` registers a thread",
        "setmaxnreg",
        constants=(Constant("reg_count", tuple(range(24, 257, 8))), Constant("is_inc", (0, 1))),
        group="warpgroup", min_arch=90, arch_specific=True, header="cluster.h",
    ),
)  # fmt: skip

# A, B, accumulators, elements of k: PTX ISA, wgmma.mma_async.
WGMMA_TYPES: Final = (
    ("f16", "f16", ("f32", "f16"), 16),
    ("bf16", "bf16", ("f32",), 16),
    ("tf32", "tf32", ("f32",), 8),
    *((a, b, ("f32", "f16"), 32) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *((a, b, ("s32",), 32) for a in ("s8", "u8") for b in ("s8", "u8")),
)
WGMMA_WIDTHS: Final = tuple(range(8, 257, 8))
_SWIZZLES = (0, 32, 64, 128)


def _shared_operand(name: str) -> tuple[Constant, ...]:
    """How a shared operand lies there: swizzle and the two strides of its descriptor, in bytes
    (matrix descriptor); `major` 0 when k is contiguous, 1 otherwise."""
    return (
        Constant(f"{name}_swizzle", _SWIZZLES), Constant(f"{name}_leading"),
        Constant(f"{name}_stride"), Constant(f"{name}_major", (0, 1), 0),
    )  # fmt: skip


def _wgmma(source: str, a: str, b: str, accumulator: str, k: int) -> DeviceOp:
    """One warp-group instruction; its width n is a constant, as is the layout of its operands."""
    from_registers = source == "rs"
    first = (
        Operand("a", "local", asynchronous=True)
        if from_registers
        else Operand("a", "shared", asynchronous=True)
    )
    layouts = (() if from_registers else _shared_operand("a")) + _shared_operand("b")
    return DeviceOp(
        f"wgmma_{source}_k{k}_{accumulator}_{a}_{b}",
        f"start d = a @ b + d * scale_d, 64 x n x {k}, a in "
        f"{'registers' if from_registers else 'shared memory'}",
        "wgmma.mma_async",
        operands=(
            Operand("d", "local", "update", asynchronous=True), first,
            Operand("b", "shared", asynchronous=True), *scalars("scale_d"),
        ),
        constants=(Constant("n", WGMMA_WIDTHS), *layouts),
        group="warpgroup", min_arch=90, max_arch=90, arch_specific=True, header="wgmma.h",
        queue="wgmma",
    )  # fmt: skip


_WGMMA = (
    DeviceOp("wgmma_fence", "order register and shared writes before the next wgmma",
             "wgmma.fence", group="warpgroup", min_arch=90, max_arch=90, arch_specific=True,
             header="wgmma.h"),
    DeviceOp("wgmma_commit", "close a group of wgmma", "wgmma.commit_group",
             group="warpgroup", min_arch=90, max_arch=90, arch_specific=True, header="wgmma.h",
             closes="wgmma"),
    DeviceOp("wgmma_wait", "wait until at most `groups` groups of wgmma are pending",
             "wgmma.wait_group", constants=(Constant("groups", tuple(range(8))),),
             group="warpgroup", min_arch=90, max_arch=90, arch_specific=True, header="wgmma.h",
             waits="wgmma"),
    DeviceOp("wgmma_fence_operand", "keep the compiler from moving these registers",
             operands=(Operand("registers", "local", "update"),), header="wgmma.h",
             max_arch=90, arch_specific=True, min_arch=90),
    *(
        _wgmma(source, a, b, accumulator, k)
        for source in ("ss", "rs")
        for a, b, accumulators, k in WGMMA_TYPES
        for accumulator in accumulators
    ),
)  # fmt: skip

ROWS: Final[tuple[DeviceOp, ...]] = (*_MBARRIERS, *_FENCES, *_BULK, *_CLUSTERS, *_WGMMA)
