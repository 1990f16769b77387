"""Where a thread stands, how threads wait for each other, and statements for one thread."""

from __future__ import annotations

from typing import Any

from tilelang.language import allreduce, warps
from tilelang.language.catalog import NO_OTHER_GPU, NOT_METAL, language_function
from tilelang.language.operands import (
    IntLike,
    ScalarLike,
    effect,
    integer,
    intrinsic,
    kind_text,
    static_bool,
    static_int,
    trace_of,
)
from tilelang.program import indexing, operators
from tilelang.program.buffer import Buffer
from tilelang.program.context import reject, warn
from tilelang.program.expr import BOOL, INT32, Const, Expr, Var
from tilelang.program.stmt import Assert, Evaluate, Jump
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics.model import Severity

NAMED_BARRIERS = 16  # PTX ISA, bar.sync: barriers 0 to 15 of a block


@language_function("thread")
def get_thread_binding(dim: int = 0) -> Any:
    """The index of this thread in its block along one axis.

    Args:
        dim: 0 (x), 1 (y) or 2 (z); gives int32.

    >>> tx = T.get_thread_binding()
    """
    return _axis("get_thread_binding", "threads", dim)


@language_function("thread")
def get_thread_bindings() -> Any:
    """The indices of this thread in its block, one per thread axis of the launch.

    >>> tx, ty = T.get_thread_bindings()
    """
    return _axes("get_thread_bindings", "threads")


@language_function("thread")
def get_block_binding(dim: int = 0) -> Any:
    """The index of this block in the grid along one axis.

    Args:
        dim: 0 (x), 1 (y) or 2 (z); gives int32.

    >>> bx = T.get_block_binding(0)
    """
    return _axis("get_block_binding", "blocks", dim)


@language_function("thread")
def get_block_bindings() -> Any:
    """The indices of this block in the grid, one per grid axis of the launch.

    >>> bx, by = T.get_block_bindings()
    """
    return _axes("get_block_bindings", "blocks")


@language_function("thread")
def get_thread_extent(dim: int = 0) -> Any:
    """How many threads a block has along one axis.

    Args:
        dim: 0 (x), 1 (y) or 2 (z).

    >>> n = T.get_thread_extent()
    """
    axis = static_int("get_thread_extent", "dim", dim, 0, 2)
    pairs = _launch("get_thread_extent").threads
    if is_unknown(pairs):
        return pairs
    return pairs[axis][1] if axis is not None and axis < len(pairs) else Const(1, INT32)


@language_function("sync")
def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """Waits until all threads of the block are here (PTX ISA, bar.sync).

    Args:
        barrier_id: a named barrier, 0 to 15; arrive_count: how many threads meet there, a
        multiple of 32.

    >>> T.sync_threads()
    """
    if arrive_count is not None and barrier_id is None:
        reject("TL511", "`arrive_count` of `T.sync_threads` needs a `barrier_id`")
    args: list[Expr] = []
    for role, value, high in (
        ("barrier_id", barrier_id, NAMED_BARRIERS - 1), ("arrive_count", arrive_count, 1024),
    ):  # fmt: skip
        if value is None:
            continue
        expr = integer("sync_threads", role, value)
        args.append(expr)
        if isinstance(expr, Const):
            _check_barrier(role, int(expr.value), high)
    effect("sync_threads", args)


@language_function("sync")
def sync_warp(mask: IntLike | None = None) -> None:
    """Waits until the named lanes of the warp are here (PTX ISA, bar.warp.sync).

    Args:
        mask: one bit per lane, all of them when left out.

    >>> T.sync_warp()
    """
    effect("sync_warp", () if mask is None else (integer("sync_warp", "mask", mask),))


@language_function("sync", targets=NO_OTHER_GPU)
def sync_grid() -> None:
    """Waits until all threads of all blocks are here; the launch becomes cooperative.

    >>> T.sync_grid()
    """
    effect("sync_grid")


@language_function("sync", targets=NO_OTHER_GPU)
def sync_global() -> None:
    """Deprecated spelling of `T.sync_grid`.

    >>> T.sync_grid()
    """
    warn("TL118", "`T.sync_global` is deprecated", help="write `T.sync_grid()`")
    effect("sync_grid")


@language_function("sync")
def tvm_storage_sync(scope: str = "shared") -> None:
    """Waits until all threads of the block see the writes to a memory scope.

    Args:
        scope: "shared" or "shared.dyn" (the block), "warp", or "global" (the grid).

    >>> T.tvm_storage_sync("shared")
    """
    names = {"shared": "sync_threads", "shared.dyn": "sync_threads", "warp": "sync_warp",
             "global": "sync_grid"}  # fmt: skip
    if scope not in names:
        reject("TL117", f"`{scope}` is not a scope to wait for", help=f"one of {', '.join(names)}")
    effect(names[scope])


@language_function("thread")
def thread_return() -> None:
    """Ends this thread; `return` cannot be used inside device branches.

    >>> if row >= M: T.thread_return()
    """
    trace = trace_of("thread_return")
    trace.emit(Jump("thread_return", **trace.position()))


@language_function("sync", targets=NO_OTHER_GPU)
def print_(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Prints a value, a whole buffer (by one thread) or a message from the device.

    Args:
        obj: expression, buffer or None; msg: text in front;
        warp_group_id, warp_id: which warp prints a buffer.

    >>> T.print(acc[0, 0], msg="acc")
    """
    if isinstance(obj, str):
        obj, msg = None, f"{msg}{obj}"
    if not isinstance(msg, str):
        reject("TL116", f"`msg` of `T.print` is {kind_text(msg)}, not a string",
               help="print one value at a time: `T.print(x, msg=\"x\")`")  # fmt: skip
    where = {
        "warp_group_id": static_int("print", "warp_group_id", warp_group_id, 0, 7),
        "warp_id": static_int("print", "warp_id", warp_id, 0, 31),
    }
    if obj is None:
        effect("print", (), msg=msg)
    elif isinstance(obj, Buffer):
        effect("print_buffer", (indexing.region_of(obj),), msg=msg, **where)
    else:
        effect("print", (operators.as_expr(obj),), msg=msg)


@language_function("sync", targets=NOT_METAL)
def device_assert(condition: ScalarLike, msg: str = "", no_stack_info: bool = False) -> None:
    """Stops the kernel with a message when a condition is false.

    Args:
        condition: bool expression; msg: what to report; no_stack_info: leave out the position.

    >>> T.device_assert(index < N, "index out of range")
    """
    static_bool("device_assert", "no_stack_info", no_stack_info)
    test = operators.as_condition(condition)
    if isinstance(test, Const) and not test.value:
        warn("TL184", f"the assertion is always false: {msg}", severity=Severity.WARNING)
    trace = trace_of("device_assert")
    trace.emit(Assert(test, msg or f"{test}", **trace.position()))


@language_function("sync")
def evaluate(value: Any) -> None:
    """Evaluates an expression for its effect.

    Args:
        value: expression.

    >>> T.evaluate(T.call_extern("int32", "do_it", A[0]))
    """
    if value is None:
        return
    trace = trace_of("evaluate")
    trace.emit(Evaluate(operators.as_expr(value), **trace.position()))


@language_function("thread", targets=NOT_METAL)
def get_lane_idx(warp_size: int | None = None) -> Any:
    """The position of this thread in its warp.

    Args:
        warp_size: lanes of a warp (default: 32, on CDNA 64); gives int32.

    >>> lane = T.get_lane_idx()
    """
    return _position("get_lane_idx", warp_size)


@language_function("thread", targets=NOT_METAL)
def get_warp_idx(warp_size: int | None = None) -> Any:
    """The number of this thread's warp in the block, without telling the compiler it is uniform.

    Args:
        warp_size: lanes of a warp (default: 32, on CDNA 64); gives int32.

    >>> warp = T.get_warp_idx()
    """
    return _position("get_warp_idx", warp_size)


@language_function("thread", targets=NOT_METAL)
def get_warp_idx_sync(warp_size: int | None = None) -> Any:
    """The number of this thread's warp in the block, uniform across the warp.

    Args:
        warp_size: lanes of a warp (default: 32, on CDNA 64); gives int32.

    >>> warp = T.get_warp_idx_sync()
    """
    return _position("get_warp_idx_sync", warp_size)


@language_function("thread", targets=NOT_METAL)
def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> Any:
    """The number of this thread's warp group (four warps) in the block.

    Args:
        warp_size: lanes of a warp; warps_per_group: 4 when left out; gives int32.

    >>> group = T.get_warp_group_idx()
    """
    if warps_per_group is not None:
        static_int("get_warp_group_idx", "warps_per_group", warps_per_group, 1, 32)
    return _position("get_warp_group_idx", warp_size, warps_per_group=warps_per_group)


@language_function("thread", targets=NOT_METAL)
def shuffle_elect(thread_extent: int) -> Any:
    """True in exactly one thread of each group (PTX ISA, elect.sync).

    Args:
        thread_extent: threads of a group, a multiple of 32; 0 for the whole block; gives bool.

    >>> if T.shuffle_elect(128):
    """
    extent = static_int("shuffle_elect", "thread_extent", thread_extent, 0, 1024)
    if extent is not None and extent % 32:
        reject("TL408", f"`thread_extent={extent}` of `T.shuffle_elect` is not a multiple of 32")
    return intrinsic("shuffle_elect", (), BOOL, thread_extent=extent)


def _position(function: str, warp_size: Any, **given: Any) -> Expr:
    size = None if warp_size is None else static_int(function, "warp_size", warp_size, 32, 64)
    return intrinsic(function, (), INT32, warp_size=size, **given)


def _launch(function: str) -> Any:
    trace = trace_of(function)
    launch = trace.launch
    if launch is None and trace.facts.get("launch_failed"):
        return Unknown("launch")  # what is wrong with it has been said
    if launch is None:
        reject(
            "TL162",
            f"`T.{function}` outside `with T.Kernel(…)`",
            label="there are no threads here",
            help="call it inside the kernel launch",
        )
    return launch


def _axis(function: str, which: str, dim: Any) -> Expr | Unknown:
    axis = static_int(function, "dim", dim, 0, 2)
    if axis is None:
        return Unknown(f"T.{function}(…)")
    pairs: tuple[tuple[Var, Expr], ...] | Unknown = getattr(_launch(function), which)
    if isinstance(pairs, Unknown):
        return pairs
    return pairs[axis][0] if axis < len(pairs) else Const(0, INT32)


def _axes(function: str, which: str) -> tuple[Expr, ...] | Unknown:
    pairs: tuple[tuple[Var, Expr], ...] | Unknown = getattr(_launch(function), which)
    if isinstance(pairs, Unknown):
        return pairs
    return tuple(var for var, _ in pairs)


def _check_barrier(role: str, number: int, high: int) -> None:
    if not 0 <= number <= high or (role == "arrive_count" and number == 0):
        reject("TL511", f"`{role}={number}` of `T.sync_threads` is outside 0 … {high}")
    if role == "arrive_count" and number % 32:
        reject(
            "TL511",
            f"`arrive_count={number}` of `T.sync_threads` is not a multiple of 32",
            help="whole warps arrive at a named barrier",
        )


FUNCTIONS = (
    get_thread_binding, get_thread_bindings, get_block_binding, get_block_bindings,
    get_thread_extent, sync_threads, sync_warp, sync_grid, sync_global, tvm_storage_sync,
    thread_return, print_, device_assert, evaluate, get_lane_idx, get_warp_idx, get_warp_idx_sync,
    get_warp_group_idx, shuffle_elect, *warps.FUNCTIONS, *allreduce.FUNCTIONS,
)  # fmt: skip
