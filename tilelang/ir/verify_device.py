"""What may a function at stage `device` not contain? See `device_ops` for what it may.

Part of `verify`: places, spans and dtypes are checked there. Here: no tile operation, fragment or
parallel loop is left, storage is flat, and each device operation is called as its row says, with
operands that live where it can reach them, on an architecture that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.calls import TILE_OPS
from tilelang.ir.device_op import DeviceOp, Operand, Space
from tilelang.ir.device_ops import constants_of, op_of_call
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import collect

_SHARED: Final = ("shared", "shared.dyn")
_LOCAL: Final = ("local", "local.var")
_SCOPES_OF: Final[Mapping[Space, tuple[str, ...]]] = {
    "local": _LOCAL,
    "matrix": ("local.matrix",),
    "shared": _SHARED,
    "global": ("global",),
    "memory": ("global", *_SHARED),
    "any": ("global", *_SHARED, *_LOCAL),
    "barrier": ("shared.barrier", "shared.cluster_barrier"),
}
_FLAT: Final = ("local", *_SHARED)
_GONE: Final = ("local.fragment", "local.reducer")


def device_problems(func: tirx.PrimFunc, arch: str | None = None) -> Iterator[tuple[Any, str]]:
    """Each thing that is wrong, as the node and a sentence about it.

    `arch` is spelled `sm_90a`; None leaves architectures unchecked.
    """
    if not _has_launch(func.body):
        yield func, "has no launch"
    for loop in collect(func.body, tirx.For):
        if int(loop.kind) == int(tirx.ForKind.PARALLEL):
            yield loop, "is a parallel loop"
    for alloc in collect(func.body, tirx.AllocBuffer):
        yield from _storage(alloc)
    for stmt in collect(func.body, tirx.Evaluate):
        name = op_of(stmt.value)
        if name in TILE_OPS:
            yield stmt, f"T.{name} is not lowered"
    for call in collect(func.body, tirx.Call):
        op = op_of_call(call)
        if op is not None:
            yield from ((call, problem) for problem in _call(op, call, arch))


def _has_launch(body: Any) -> bool:
    return any(str(s.attr_key) == attrs.THREAD_EXTENT for s in collect(body, tirx.AttrStmt))


def _storage(alloc: Any) -> Iterator[tuple[Any, str]]:
    buffer, scope = alloc.buffer, str(alloc.buffer.scope())
    if scope in _GONE:
        yield alloc, f"{buffer.name} still is of scope {scope}"
    if scope in _FLAT:
        if len(buffer.shape) != 1:
            yield alloc, f"{buffer.name} of scope {scope} has {len(buffer.shape)} dimensions"
        if any(build.int_value(extent) is None for extent in buffer.shape):
            yield alloc, f"{buffer.name} of scope {scope} has an extent that is no constant"


def _call(op: DeviceOp, call: Any, arch: str | None) -> Iterator[str]:
    args = list(call.args)
    yield from op.problems(len(args), constants_of(call))
    if arch is not None and not op.exists_on(arch):
        yield f"T.{op.name} does not exist on {arch}"
    for row, arg in zip(op.operands, args, strict=False):
        if row.by_reference:
            yield from _region(op, row, arg)


def _region(op: DeviceOp, row: Operand, arg: Any) -> Iterator[str]:
    what = f"operand {row.name} of T.{op.name}"
    if not isinstance(arg, tirx.TensorRegion):
        yield f"{what} is not a region"
        return
    buffer = arg.source
    scope = str(buffer.scope())
    if scope not in _SCOPES_OF[row.space]:
        yield f"{what} is {buffer.name} of scope {scope}, not in {row.space} memory"
    if row.dtype is not None and str(buffer.dtype) != row.dtype:
        yield f"{what} is {buffer.name} of {buffer.dtype}, not {row.dtype}"
    if row.lanes is not None:
        extents = [build.int_value(r.extent) for r in arg.region]
        count = 1
        for extent in extents:
            count *= extent or 0
        if count != row.lanes:
            yield f"{what} covers {count} elements of {buffer.name}, not {row.lanes}"
