"""Does the kernel ask for what the target does not have? (TL401, TL414, TL507)

A CPU counts blocks along an axis in int32, as GPUs do, and ignores pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.arith import constant_value
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Allocate, Function, Launch, TileOp, walk_statements
from tilelang_diagnostics.model import Diagnostic

# CUDA programming guide, table of compute capabilities: maximum x-, y- and z-dimension of a grid.
_COUNTED = (1 << 31) - 1
GRID_LIMITS = {
    "cuda": (_COUNTED, (1 << 16) - 1, (1 << 16) - 1),
    "cpu": (_COUNTED, _COUNTED, _COUNTED),
    "auto": (_COUNTED, _COUNTED, _COUNTED),
}


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """What `target` refuses, or makes useless."""
    kind = target.split(":")[0]
    if kind == "metal":
        yield from _wide_floats(function)
    for stmt in walk_statements(function.body):
        if isinstance(stmt, Launch) and kind in GRID_LIMITS:
            yield from _check_grid(stmt, GRID_LIMITS[kind], target)
        if isinstance(stmt, TileOp) and stmt.attr("use_tma") and kind not in ("cuda", "auto"):
            yield _no_tma(stmt, target)


def _wide_floats(function: Function) -> Iterator[Diagnostic]:
    """Metal Shading Language has no double."""
    buffers = [p for p in (*function.params, *function.outputs) if isinstance(p, Buffer)]
    buffers += [s.buffer for s in walk_statements(function.body) if isinstance(s, Allocate)]
    for buffer in buffers:
        if buffer.dtype.base == "float64":
            yield make_diagnostic(
                "TL401",
                f"dtype float64 of `{buffer.name}` cannot be compiled for Metal",
                span=buffer.span,
                label="Metal has no float64",
                help="use float32, or compile for another target",
            )


def _check_grid(launch: Launch, limits: tuple[int, ...], target: str) -> Iterator[Diagnostic]:
    for axis, (_, extent), limit in zip("xyz", launch.blocks, limits, strict=False):
        number = constant_value(extent)
        if number is not None and number > limit:
            yield make_diagnostic(
                "TL414",
                f"{number} blocks along {axis}; {target} has at most {limit}",
                span=launch.span,
                label="the grid is too large",
                help="put the long axis first, or fold two axes into one"
                if limit < limits[0]
                else "give a block more work, or split the axis into two",
            )


def _no_tma(op: TileOp, target: str) -> Diagnostic:
    return make_diagnostic(
        "TL401",
        f"`use_tma` of `T.{op.name}_{op.attr('op', '')}` is not available on target `{target}`",
        span=op.span,
        label="needs cuda:sm_90",
        help="leave it out; the tile is then added element by element",
    )
