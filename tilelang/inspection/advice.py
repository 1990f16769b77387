"""Which pipelines could be deeper for nothing? (TL513)

Registers are known once code is made, so that it can be said what another stage costs: nothing, as
long as the same number of blocks runs at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tilelang.inspection.model import KernelReport
from tilelang.layouts.layout_map import LayoutMap
from tilelang.occupancy import occupancy_of
from tilelang.program.arith import constant_value
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import Block, For, Function, TileOp, walk_statements
from tilelang.target import Target
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic, Label, Span

# Two iterations ahead hide the latency of memory behind most tiles; nobody is told to go further.
_ENOUGH: Final = 3


def deeper_pipelines(
    function: Function, layouts: LayoutMap, kernels: Sequence[KernelReport], target: Target
) -> Iterator[Diagnostic]:
    """A remark for each pipeline of two stages, or one, that could have more."""
    sizes = {(e.name, e.span): e.bytes for e in layouts if e.kind == "shared" and e.bytes}
    for loop in walk_statements(function.body):
        stages = loop.attr("num_stages") if isinstance(loop, For) else None
        if not isinstance(loop, For) or not isinstance(stages, int) or not 0 < stages < _ENOUGH:
            continue
        kernel = _kernel_of(loop, kernels)
        tiles = _tiles(loop.body, sizes)
        if kernel is not None and tiles:
            yield from _deeper(loop, stages, kernel, tiles, target)


def _deeper(
    loop: For, stages: int, kernel: KernelReport, tiles: Mapping[Buffer, int], target: Target
) -> Iterator[Diagnostic]:
    now, limit = kernel.occupancy, kernel.shared.limit
    turns = constant_value(loop.loop_vars[0].extent) if loop.loop_vars else None
    if now is None or limit is None or kernel.registers is None:
        return
    for depth in range(_ENOUGH, stages, -1):
        needed = kernel.shared.total + (depth - stages) * sum(tiles.values())
        then = occupancy_of(
            target, threads=kernel.threads, registers=kernel.registers, shared=needed
        )
        if needed > limit or then is None or then.blocks < now.blocks:
            continue
        if turns is not None and turns < depth:
            continue
        labels = [Label(b.span, f"{n} bytes a stage") for b, n in tiles.items() if b.span]
        blocks = f"{now.blocks} block{'s' * (now.blocks != 1)} at once as now"
        yield diagnose(
            "TL513",
            f"{depth} stages of this pipeline would fit as well: {needed} of {limit} bytes of "
            f"shared memory, with {blocks}",
            span=loop.span,
            label=f"{stages} stage{'s' * (stages > 1)}",
            labels=tuple(labels),
            help=f"try num_stages={depth}",
        )
        return


def _kernel_of(loop: For, kernels: Sequence[KernelReport]) -> KernelReport | None:
    """The kernel whose code has this loop."""
    for kernel in kernels:
        if any(_same(found.span, loop.span) for found in kernel.loops):
            return kernel
    return None


def _same(a: Span | None, b: Span | None) -> bool:
    return a is not None and b is not None and (a.file, a.line) == (b.file, b.line)


def _tiles(
    body: Block, sizes: Mapping[tuple[str, Span | None], int | None]
) -> dict[Buffer, int]:  # fmt: skip
    """Bytes of the shared tiles that are copied out of tensors as they are; none if there is a
    copy that cannot be asynchronous."""
    found: dict[Buffer, int] = {}
    for stmt in walk_statements(body):
        if not isinstance(stmt, TileOp) or stmt.name != "copy":
            continue
        source, destination, *_ = stmt.args
        if not (isinstance(source, Region) and isinstance(destination, Region)):
            continue
        if not (source.buffer.is_global and destination.buffer.is_shared):
            continue
        size = sizes.get((destination.buffer.name, destination.buffer.span))
        if size is None or source.buffer.dtype != destination.buffer.dtype:
            return {}
        found[destination.buffer] = size
    return found
