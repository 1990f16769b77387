"""Which pipelines of the author's depth could be deeper for nothing? (TL513)

Before and after: for k in T.Pipelined(64, num_stages=2): …

Said where every tile has its place: a third stage fits into the shared memory of the target, and as
many blocks run at once. Registers are not known yet: those that the loop's own arrays take are
counted, and more can only lower both numbers to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import SHARED_OFFSET, op_of_call
from tilelang.ir.spans import from_tir
from tilelang.ir.visit import collect, map_launches, storage_roots
from tilelang.occupancy import occupancy_of
from tilelang.passes.context import PassContext
from tilelang.target import parse_target
from tilelang_diagnostics.model import Label

# Two iterations ahead hide the latency of memory behind most tiles; nobody is told to go further.
ENOUGH: Final = 3
MOST_REGISTERS: Final = 255  # of a thread


def note_deeper_pipelines(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Report pipelines that have room for another stage; `func` as it is."""

    def look(launch: Any) -> Any:
        _launch(launch, ctx)
        return launch

    if not any(remark.code == "TL508" for remark in ctx.remarks):
        map_launches(func.body, look)
    return func


def _launch(launch: Any, ctx: PassContext) -> None:
    loops = [s for s in collect(launch, tirx.For) if _could_be_deeper(s)]
    if not loops:
        return
    sizes: dict[Any, int] = {}
    end = 0
    for s in collect(launch, tirx.AllocBuffer):
        if str(s.buffer.scope()).startswith("shared"):
            sizes[s.buffer] = _bytes(s.buffer)
            end = max(end, int(s.annotations.get(SHARED_OFFSET, 0)) + sizes[s.buffer])
    views = storage_roots(launch)
    for loop in loops:
        tiles = {b: sizes[b] for b in _copied(loop, views) if b in sizes}
        if tiles:
            _report(loop, launch, tiles, end, ctx)


def _could_be_deeper(loop: Any) -> bool:
    said = loop.annotations
    if attrs.PIPELINED not in said or attrs.LOOP_STAGE in said:
        return False
    stages = str(said.get(attrs.NUM_STAGES, 0))
    turns = build.int_value(loop.extent)
    return stages.isdigit() and 1 < int(stages) < ENOUGH and (turns is None or turns >= ENOUGH)


def _copied(loop: Any, views: Mapping[Any, Any]) -> list[Any]:
    """The tiles that copies of a loop fill."""
    found = []
    for call in collect(loop.body, tirx.Call):
        op = op_of_call(call)
        if op is not None and op.name == "cp_async":
            buffer = call.args[0].source
            found.append(views.get(buffer, buffer))
    return list(dict.fromkeys(found))


def _report(loop: Any, launch: Any, tiles: Mapping[Any, int], total: int, ctx: PassContext) -> None:
    stages, limit = int(loop.annotations[attrs.NUM_STAGES]), ctx.capabilities.shared_bytes
    more = ENOUGH - stages
    needed = total + sum(more * size // stages for size in tiles.values())
    target, threads = parse_target(ctx.target), _threads(launch)
    registers = _registers(loop)
    now, then = (
        occupancy_of(target, threads=threads, registers=registers, shared=size)
        for size in (total, needed)
    )
    if limit is None or needed > limit or now is None or then is None or then.blocks < now.blocks:
        return
    spans = [(from_tir(buffer.span), size // stages) for buffer, size in tiles.items()]
    ctx.report(
        "TL513",
        f"{ENOUGH} stages of this pipeline would fit as well: {needed} of {limit} bytes of shared "
        "memory, with as many blocks at once",
        loop.span,
        label=f"{stages} stages",
        labels=tuple(Label(span, f"{size} bytes a stage") for span, size in spans if span),
        help=f"try num_stages={ENOUGH}",
    )


def _registers(loop: Any) -> int:
    """What the arrays take that an iteration works on."""
    used = {x.buffer for x in collect(loop.body, tirx.BufferStore)}
    used |= {x.source for x in collect(loop.body, tirx.TensorLoad)}
    used |= {x.source for x in collect(loop.body, tirx.TensorRegion)}
    found = sum(-(-_bytes(b) // 4) for b in used if str(b.scope()) == "local")
    return min(found, MOST_REGISTERS)


def _threads(launch: Any) -> int:
    total = 1
    while isinstance(launch, tirx.AttrStmt) and str(launch.attr_key) == attrs.THREAD_EXTENT:
        if str(launch.node.thread_tag) in attrs.THREAD_TAGS:
            total *= build.int_value(launch.value) or 1
        launch = launch.body
    return total


def _bytes(buffer: Any) -> int:
    total = find_dtype(str(buffer.dtype)).bits
    for extent in buffer.shape:
        total *= build.int_value(extent) or 1
    return -(-total // 8)
