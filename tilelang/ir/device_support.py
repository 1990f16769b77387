"""Which device operations does each kind of target have?

One row a kind: the device headers there are for it, and what those lack. The pass that refuses
operations by name, the printer and the emulator's tests read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tilelang.ir.device_op import DeviceOp
from tilelang.target import Kind, Target


@dataclass(frozen=True, slots=True)
class Support:
    """Operations of `headers`, less those in `lacks`, where each has the reason in a few words.

    `others` says the same of each header that is not there.
    """

    headers: frozenset[str]
    lacks: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    others: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


_EVERYWHERE: Final = frozenset({
    "common.h", "barrier.h", "warp.h", "atomics.h", "memory.h", "math.h", "debug.h", "random.h",
})  # fmt: skip
_HOPPER: Final = "it belongs to the asynchronous engines of NVIDIA's Hopper"
_NVIDIA_MATRICES: Final = "it is a matrix instruction of NVIDIA's tensor cores"
_NO_CUDA: Final[Mapping[str, str]] = {
    "copy_async.h": "its threads copy by loads and stores; `T.copy` does that on every target",
    "mma.h": _NVIDIA_MATRICES,
    "wgmma.h": _HOPPER, "tma.h": _HOPPER, "mbarrier.h": _HOPPER, "cluster.h": _HOPPER,
    "grid.h": "a launch of its blocks gives no barrier across them here",
}  # fmt: skip
_ONE_WORD: Final = "a warp has 64 lanes, and the result holds one bit for each of 32"
_ROCM: Final = "it needs ROCm's device library, which this version does without"
_NO_NAMED: Final = "it has one barrier for a whole block, and none with a number"

_METAL_HEADERS: Final = frozenset(
    {"common.h", "barrier.h", "warp.h", "atomics.h", "memory.h", "math.h", "simdgroup.h"}
)
_NOT_YET: Final = "the headers for Metal do not have it yet"
_WIDE: Final = tuple(
    f"{kind}{space}{bits}"
    for kind in ("ld", "st") for space in "gs" for bits in (32, 64, 128, 256)
)  # fmt: skip
_ROUNDED: Final = tuple(
    f"ieee_{name}_{mode}"
    for name in ("add", "sub", "mul", "fmaf", "fdiv", "frcp", "fsqrt")
    for mode in ("rz", "ru", "rd")
)
_NOT_ON_METAL: Final = (
    "ballot", "ballot_sync", "activemask", "match_any_sync", "match_all_sync", "shfl_up",
    "shfl_down", "elect_one", "shuffle_elect", "get_lane_idx", "get_warp_idx",
    "get_warp_idx_sync", "get_warp_group_idx", "to_tf32", "dp4a", "bfe", "expm1", "erfc",
    "atomic_load", "atomic_store", "atomic_cas", "fence_block", "fence_device",
    "syncthreads_and", "syncthreads_or", "syncthreads_count", *_WIDE,
)  # fmt: skip

SUPPORT: Final[Mapping[Kind, Support]] = {
    "cuda": Support(
        _EVERYWHERE | {
            "copy_async.h", "mma.h", "wgmma.h", "tma.h", "mbarrier.h", "cluster.h", "grid.h",
            "approximate.h",
        }
    ),
    "hip": Support(
        _EVERYWHERE - {"random.h"} | {"mfma.h"},
        lacks={
            **dict.fromkeys(
                ("ballot", "ballot_sync", "activemask", "match_any_sync", "match_all_sync"),
                _ONE_WORD,
            ),
            **dict.fromkeys(("print", "print_buffer", "erfc"), _ROCM),
            **dict.fromkeys(_ROUNDED, "its rounding is that of a whole wave"),
            "named_barrier_arrive": _NO_NAMED,
        },
        others={**_NO_CUDA, "random.h": _ROCM},
    ),
    "metal": Support(
        _METAL_HEADERS,
        lacks={
            **dict.fromkeys(_NOT_ON_METAL, _NOT_YET),
            **dict.fromkeys(_ROUNDED, "Metal only rounds to nearest"),
            "named_barrier_arrive": _NO_NAMED,
        },
        others={
            **_NO_CUDA,
            **dict.fromkeys(("debug.h", "random.h", "approximate.h"), _NOT_YET),
            "mfma.h": "it is a matrix instruction of AMD's",
        },
    ),
}  # fmt: skip


def lacking(op: DeviceOp, kind: str) -> str | None:
    """Why a kind of target does not have `op`; None where it has, on one architecture or other."""
    row = next((found for name, found in SUPPORT.items() if name == kind), None)
    if row is None:
        return "this version generates no code for it"
    if op.header in row.headers:
        return row.lacks.get(op.name)
    return row.others.get(op.header, "it is an instruction of other processors")


def lacking_in_call(op: DeviceOp, kind: str, operands: int) -> str | None:
    """The same for a call with so many operands: a barrier with a number is another matter."""
    row = SUPPORT.get(kind)  # type: ignore[call-overload]
    if op.name == "sync_threads" and operands and row and "named_barrier_arrive" in row.lacks:
        return _NO_NAMED
    return lacking(op, kind)


def has_op(op: DeviceOp, target: Target) -> bool:
    """Whether `target` has `op`."""
    return lacking(op, target.kind) is None and op.exists_on(target.arch)
