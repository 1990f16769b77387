"""Helpers that run while a kernel is traced: coordinates, schedulers, layouts, fp8 formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.language import fp8
from tilelang.language.catalog import language_function
from tilelang.language.operands import IntLike, integer
from tilelang.language.tile_scheduler import PersistentTileScheduler
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.program import operators
from tilelang.program.context import reject


@language_function("scalar", outside=True)
def index_to_coordinates(index: IntLike, shape: Sequence[IntLike]) -> list[Any]:
    """The coordinates of an element from its row-major position.

    Args:
        index: position; shape: extents; gives one coordinate per extent.

    >>> row, column = T.index_to_coordinates(i, (block_M, block_N))
    """
    if not isinstance(shape, (tuple, list)) or not shape:
        reject("TL116", "`shape` of `T.index_to_coordinates` is not a tuple of extents")
    rest: Any = index if isinstance(index, int) else integer("index_to_coordinates", "index", index)
    coordinates: list[Any] = []
    for extent in reversed(shape[1:]):
        coordinates.insert(0, _apply("%", rest, extent))
        rest = _apply("//", rest, extent)
    return [rest, *coordinates]


@language_function("launch")
def launch_thread(thread: Any, extent: Any) -> None:
    """Not part of the language: a raw thread axis. Threads come from `T.Kernel(…, threads=n)`.

    Args:
        thread: tag such as "threadIdx.x"; extent: number of threads.

    >>> with T.Kernel(grid, threads=extent) as bx:
    """
    reject(
        "TL130",
        "`T.launch_thread` opens a raw thread axis, which kernels do not have",
        help=f"launch with `T.Kernel(…, threads={extent})` and use `T.get_thread_binding()`",
    )


def _apply(op: str, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return left % right if op == "%" else left // right
    return operators.binary(op, left, right)


FUNCTIONS = (index_to_coordinates, launch_thread)
CONSTANTS = {
    "Layout": Layout, "Fragment": Fragment, "PersistentTileScheduler": PersistentTileScheduler,
    "fp8": fp8,
}  # fmt: skip
