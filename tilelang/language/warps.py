"""What the lanes of a warp, and the threads of a block, tell each other without memory."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import SCALARS
from tilelang.language.catalog import NO_OTHER_GPU, NOT_METAL, language_function
from tilelang.language.operands import (
    IntLike,
    ScalarLike,
    integer,
    intrinsic,
    known,
    static_int,
    use_of,
)
from tilelang.program import operators
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Expr

FULL_MASK = 0xFFFFFFFF
UINT32 = SCALARS["uint32"]


@language_function("thread")
def shfl_sync(
    value: ScalarLike, src_lane: IntLike, width: int = 32, mask: IntLike = FULL_MASK
) -> Expr:
    """The value another lane has (PTX ISA, shfl.sync.idx).

    Args:
        value: any 32- or 64-bit expression; src_lane: lane to read; width: lanes of a segment, a
        power of two; mask: participating lanes; gives the dtype of `value`.

    >>> first = T.shfl_sync(x, 0)
    """
    return _shuffle("shfl_sync", value, "src_lane", src_lane, width, mask)


@language_function("thread")
def shfl_xor(
    value: ScalarLike, lane_mask: IntLike, width: int = 32, mask: IntLike = FULL_MASK
) -> Expr:
    """The value of the lane whose number differs in the bits of `lane_mask` (shfl.sync.bfly).

    Args:
        value: any 32- or 64-bit expression; lane_mask: bits to flip; width, mask: as
        `T.shfl_sync`; gives the dtype of `value`.

    >>> y = T.shfl_xor(x, 1)
    """
    return _shuffle("shfl_xor", value, "lane_mask", lane_mask, width, mask)


@language_function("thread", targets=NOT_METAL)
def shfl_up(value: ScalarLike, delta: IntLike, width: int = 32, mask: IntLike = FULL_MASK) -> Expr:
    """The value of the lane `delta` below (PTX ISA, shfl.sync.up).

    Args:
        value: any 32- or 64-bit expression; delta: distance; width, mask: as `T.shfl_sync`.

    >>> left = T.shfl_up(x, 1)
    """
    return _shuffle("shfl_up", value, "delta", delta, width, mask)


@language_function("thread", targets=NOT_METAL)
def shfl_down(
    value: ScalarLike, delta: IntLike, width: int = 32, mask: IntLike = FULL_MASK
) -> Expr:
    """The value of the lane `delta` above (PTX ISA, shfl.sync.down).

    Args:
        value: any 32- or 64-bit expression; delta: distance; width, mask: as `T.shfl_sync`.

    >>> right = T.shfl_down(x, 1)
    """
    return _shuffle("shfl_down", value, "delta", delta, width, mask)


@language_function("thread")
def any_sync(predicate: ScalarLike, mask: IntLike = FULL_MASK) -> Expr:
    """Whether the predicate holds in any named lane (PTX ISA, vote.sync.any).

    Args:
        predicate: bool or integer; mask: participating lanes; gives int32.

    >>> if T.any_sync(x > limit):
    """
    return _vote("any_sync", predicate, mask)


@language_function("thread")
def all_sync(predicate: ScalarLike, mask: IntLike = FULL_MASK) -> Expr:
    """Whether the predicate holds in all named lanes (PTX ISA, vote.sync.all).

    Args:
        predicate: bool or integer; mask: participating lanes; gives int32.

    >>> if T.all_sync(done):
    """
    return _vote("all_sync", predicate, mask)


@language_function("thread", targets=NO_OTHER_GPU)
def ballot_sync(predicate: ScalarLike, mask: IntLike = FULL_MASK) -> Expr:
    """One bit per lane: whether the predicate holds there (PTX ISA, vote.sync.ballot).

    Args:
        predicate: bool or integer; mask: participating lanes; gives uint32.

    >>> votes = T.ballot_sync(x > 0)
    """
    return _vote("ballot_sync", predicate, mask)


@language_function("thread", targets=NO_OTHER_GPU)
def ballot(predicate: ScalarLike) -> Expr:
    """One bit per lane of the warp: whether the predicate holds there.

    Args:
        predicate: bool or integer; gives uint32 (64 bits on wave64).

    >>> votes = T.ballot(x > 0)
    """
    return intrinsic("ballot", (_predicate("ballot", predicate),), UINT32)


@language_function("thread", targets=NO_OTHER_GPU)
def activemask() -> Expr:
    """One bit per lane that executes this statement (PTX ISA, activemask).

    >>> mask = T.activemask()
    """
    return intrinsic("activemask", (), UINT32)


@language_function("thread", targets=NO_OTHER_GPU)
def match_any_sync(value: ScalarLike, mask: IntLike = FULL_MASK) -> Expr:
    """The lanes that have the same value as this one (PTX ISA, match.any.sync).

    Args:
        value: 32- or 64-bit expression; mask: participating lanes; gives uint32.

    >>> peers = T.match_any_sync(key)
    """
    operands = (operators.as_expr(value), _mask("match_any_sync", mask))
    return intrinsic("match_any_sync", operands, UINT32)


@language_function("thread", targets=NO_OTHER_GPU)
def match_all_sync(value: ScalarLike, mask: IntLike = FULL_MASK) -> Expr:
    """All named lanes when they have one value, else 0 (PTX ISA, match.all.sync).

    Args:
        value: 32- or 64-bit expression; mask: participating lanes; gives uint32.

    >>> same = T.match_all_sync(key)
    """
    operands = (operators.as_expr(value), _mask("match_all_sync", mask))
    return intrinsic("match_all_sync", operands, UINT32)


@language_function("thread", targets=NOT_METAL)
def syncthreads_and(predicate: ScalarLike) -> Expr:
    """Barrier of the block; whether the predicate held in all threads (PTX ISA, barrier.red.and).

    Args:
        predicate: bool or integer; gives int32.

    >>> if T.syncthreads_and(converged):
    """
    return intrinsic("syncthreads_and", (_predicate("syncthreads_and", predicate),), INT32)


@language_function("thread", targets=NOT_METAL)
def syncthreads_or(predicate: ScalarLike) -> Expr:
    """Barrier of the block; whether the predicate held in any thread (PTX ISA, barrier.red.or).

    Args:
        predicate: bool or integer; gives int32.

    >>> if T.syncthreads_or(found):
    """
    return intrinsic("syncthreads_or", (_predicate("syncthreads_or", predicate),), INT32)


@language_function("thread", targets=NOT_METAL)
def syncthreads_count(predicate: ScalarLike) -> Expr:
    """Barrier of the block; in how many threads the predicate held (PTX ISA, barrier.red.popc).

    Args:
        predicate: bool or integer; gives int32.

    >>> n = T.syncthreads_count(x > 0)
    """
    return intrinsic("syncthreads_count", (_predicate("syncthreads_count", predicate),), INT32)


@language_function("thread")
def warp_reduce_sum(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """The sum over the lanes of a warp, known to all of them.

    Args:
        value: number of this lane; logical_width: lanes of a segment, a power of two.

    >>> total = T.warp_reduce_sum(x)
    """
    return _warp_reduce("warp_reduce_sum", value, logical_width)


@language_function("thread")
def warp_reduce_max(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """The largest value of the lanes of a warp, known to all of them.

    Args:
        value: number of this lane; logical_width: lanes of a segment, a power of two.

    >>> peak = T.warp_reduce_max(x)
    """
    return _warp_reduce("warp_reduce_max", value, logical_width)


@language_function("thread")
def warp_reduce_min(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """The smallest value of the lanes of a warp, known to all of them.

    Args:
        value: number of this lane; logical_width: lanes of a segment, a power of two.

    >>> low = T.warp_reduce_min(x)
    """
    return _warp_reduce("warp_reduce_min", value, logical_width)


@language_function("thread")
def warp_reduce_bitand(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """Bitwise and over the lanes of a warp, known to all of them.

    Args:
        value: integer of this lane; logical_width: lanes of a segment, a power of two.

    >>> common = T.warp_reduce_bitand(flags)
    """
    return _warp_reduce("warp_reduce_bitand", value, logical_width)


@language_function("thread")
def warp_reduce_bitor(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """Bitwise or over the lanes of a warp, known to all of them.

    Args:
        value: integer of this lane; logical_width: lanes of a segment, a power of two.

    >>> seen = T.warp_reduce_bitor(flags)
    """
    return _warp_reduce("warp_reduce_bitor", value, logical_width)


@language_function("thread")
def warp_reduce_bitxor(value: ScalarLike, logical_width: int | None = None) -> Expr:
    """Bitwise exclusive or over the lanes of a warp, known to all of them.

    Args:
        value: integer of this lane; logical_width: lanes of a segment, a power of two.

    >>> parity = T.warp_reduce_bitxor(word)
    """
    return _warp_reduce("warp_reduce_bitxor", value, logical_width)


def _shuffle(function: str, value: Any, role: str, lane: Any, width: Any, mask: Any) -> Expr:
    operand = operators.as_expr(value)
    segment = _segment(function, "width", width)
    args = (operand, integer(function, role, lane), _mask(function, mask))
    return intrinsic(function, args, operand.dtype, width=segment)


def _vote(function: str, predicate: Any, mask: Any) -> Expr:
    dtype = UINT32 if function == "ballot_sync" else INT32
    return intrinsic(function, (_predicate(function, predicate), _mask(function, mask)), dtype)


def _warp_reduce(function: str, value: Any, logical_width: Any) -> Expr:
    operand = operators.as_expr(value)
    if "_bit" in function:
        operand = integer(function, "value", operand)
    width = None if logical_width is None else _segment(function, "logical_width", logical_width)
    return intrinsic(function, (operand,), operand.dtype, logical_width=width)


def _segment(function: str, role: str, value: Any) -> int | None:
    width = static_int(function, role, value, 1, 64)
    if width is not None and width & (width - 1):
        reject("TL117", f"`{role}={width}` of `T.{function}` is not a power of two")
    return width


def _predicate(function: str, predicate: Any) -> Expr:
    """Votes take conditions; a float would silently mean "not zero"."""
    value = operators.as_expr(predicate)
    if known(value.dtype) and not (value.dtype.is_integer or value.dtype.kind == "bool"):
        reject(
            "TL236",
            f"`T.{function}` needs an integer or bool predicate, got {value.dtype}",
            span=use_of(value),
            help="compare: `x != 0`",
        )
    return operators.as_condition(value)


def _mask(function: str, mask: Any) -> Expr:
    if isinstance(mask, int):
        return operators.constant(mask & FULL_MASK, UINT32)
    value: Expr = operators.cast(integer(function, "mask", mask), UINT32)
    return value


FUNCTIONS = (
    shfl_sync, shfl_xor, shfl_up, shfl_down, any_sync, all_sync, ballot_sync, ballot, activemask,
    match_any_sync, match_all_sync, syncthreads_and, syncthreads_or, syncthreads_count,
    warp_reduce_sum, warp_reduce_max, warp_reduce_min, warp_reduce_bitand, warp_reduce_bitor,
    warp_reduce_bitxor,
)  # fmt: skip
