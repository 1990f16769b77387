"""How many stages is `num_stages="auto"`?

The deepest pipeline whose tiles fit into the shared memory of the target, up to a depth beyond
which there is no latency left to hide. TL513 says what was chosen, and what a deeper one takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.analysis.lifetimes import Lifetime, shared_lifetimes
from tilelang.analysis.schedule import Schedule, Surroundings, plan_pipeline
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build
from tilelang.ir.spans import from_tir
from tilelang.options import PassConfigKey
from tilelang.passes.context import DEEPEST, PassContext
from tilelang.passes.plan_shared import DYNAMIC, Tile, place
from tilelang_diagnostics.model import Label

_ROW = 128  # bytes: where the next version of a tile may begin


def automatic_depth(
    loop: Any, launch: Any, around: Surroundings, known: Mapping[Any, int],
    flat: Mapping[Any, Any], ctx: PassContext,
) -> int:  # fmt: skip
    """The number of stages for a loop of `launch`. `known` are versions that other loops of it
    already need, and `flat` leads from a tile to the buffer that will hold it."""
    budget = _Budget(launch, known, flat, ctx)
    plans = {n: plan_pipeline(loop, n, around) for n in range(2, DEEPEST + 2)}
    if plans[2].depth == 0:
        # No copy can run ahead; the reasons are told for any depth.
        return 2
    limit = ctx.capabilities.shared_bytes
    chosen = 1
    for stages in range(min(ctx.deepest, DEEPEST), 1, -1):
        if limit is None or budget.bytes(plans[stages]) <= limit:
            chosen = stages
            break
    _told(loop, chosen, plans, budget, limit, ctx)
    ctx.counters["automatic stages"] = max(chosen, ctx.counters.get("automatic stages", 0))
    if limit is not None:
        _remark(loop, chosen, plans, budget, limit, ctx)
    return chosen


def _told(
    loop: Any, chosen: int, plans: Mapping[int, Schedule], budget: _Budget, limit: int | None,
    ctx: PassContext,
) -> None:  # fmt: skip
    """Why the automatic depth is no deeper."""
    if chosen == DEEPEST:
        why = "more hide no more of the latency of memory"
    elif chosen < ctx.deepest and limit is not None:
        why = f"they need {budget.bytes(plans[chosen + 1])} of {limit} bytes of shared memory"
    else:
        why = "shared memory that lowering needs for itself would not fit beside them"
    ctx.passed_over("pipeline", f"{chosen + 1} stages", why, loop.span)


def _remark(
    loop: Any, chosen: int, plans: Mapping[int, Schedule], budget: _Budget, limit: int,
    ctx: PassContext,
) -> None:  # fmt: skip
    deeper = budget.bytes(plans[chosen + 1])
    of = f"of the {limit} bytes of shared memory that {ctx.target} has for a block"
    help, notes = None, [f"{chosen + 1} stages would need {deeper} bytes"]
    if chosen == 1:
        message, notes = f'num_stages="auto" is 1 here: 2 stages need {deeper} {of}', []
        help = "use smaller tiles, so that copies can run ahead of what uses them"
    else:
        used = budget.bytes(plans[chosen])
        message = f'num_stages="auto" is {chosen} here, with {used} {of}'
        if deeper <= limit and chosen == DEEPEST:
            help, notes = f"num_stages={chosen + 1} would fit too, with {deeper} bytes", []
    labels = []
    for buffer, count in plans[max(chosen, 2)].versions.items():
        span = from_tir(buffer.span)
        if span is not None:
            labels.append(Label(span, f"{count} stages x {budget.stride(buffer)} bytes"))
    ctx.report("TL513", message, loop.span, label=f"{chosen} stages" if chosen > 1 else "1 stage",
               labels=tuple(labels), notes=tuple(notes), help=help)  # fmt: skip


class _Budget:
    """The shared memory of a launch, by how many versions of its tiles there are."""

    def __init__(
        self, launch: Any, known: Mapping[Any, int], flat: Mapping[Any, Any], ctx: PassContext
    ) -> None:
        self._known, self._flat = known, flat
        self._dynamic = shared_lifetimes(launch, DYNAMIC)
        self._static = sum(_bytes(x.buffer) for x in shared_lifetimes(launch, "shared"))
        self._share = not ctx.options[PassConfigKey.TL_DISABLE_SHARED_MEMORY_REUSE]

    def bytes(self, plan: Schedule) -> int:
        """What a block needs under this plan."""
        tiles = [self._tile(life, plan) for life in self._dynamic]
        return self._static + place(tiles, share=self._share, in_loops=True).total

    def stride(self, buffer: Any) -> int:
        """Bytes from one version of a tile to the next."""
        return -(-_bytes(self._flat.get(buffer, buffer)) // _ROW) * _ROW

    def _tile(self, life: Lifetime, plan: Schedule) -> Tile:
        count = max(plan.versions.get(life.buffer, 1), self._known.get(life.buffer, 1))
        size = self.stride(life.buffer) if count > 1 else _bytes(self._flat[life.buffer])
        return Tile(life, count, size, _ROW)


def _bytes(buffer: Any) -> int:
    total = find_dtype(str(buffer.dtype)).bits
    for extent in buffer.shape:
        total *= build.int_value(extent) or 1
    return -(-total // 8)
