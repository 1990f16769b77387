"""Which launches of a kernel are split into a warp that loads and others that compute?

`plan` finds out whether it is possible, `why_not` whether it pays, and `Writer` writes it down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tilelang.choices import Choices
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.machine import machine_of
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.program import stmt as st
from tilelang.roles.gain import why_not
from tilelang.roles.plan import Pipeline, Plan, Whole, is_load, is_pipeline, plan
from tilelang.roles.write import Writer
from tilelang.target import Target
from tilelang_diagnostics.model import Diagnostic, Span

_OFF: Final = (
    PassConfigKey.TL_DISABLE_WARP_SPECIALIZED, PassConfigKey.TL_DISABLE_TMA_LOWER,
    PassConfigKey.TL_DISABLE_WGMMA,
)  # fmt: skip

_ANOTHER: Final = "another copy of the kernel cannot be made by it"


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """`function` with those launches split that can be and should be, None if there is none.

    `notes` are the loops that a warp loads for; `refused` the copies that none makes, and why.
    """

    function: st.Function | None = None
    notes: tuple[tuple[str, Span | None, str], ...] = ()
    refused: tuple[tuple[str, Span | None], ...] = ()

    def note(self, choices: Choices) -> None:
        """Write down what was chosen."""
        for text, span, why in self.notes:
            choices.chose("pipeline", text, span, why)

    def pass_over(self, choices: Choices) -> None:
        """Write down what stood against it."""
        for why, span in self.refused:
            choices.passed_over("copy", "TMA", why, span)

    def whole(self, function: st.Function, wrong: Diagnostic) -> Split:
        """What is left of it where lowering found something against it, in one of its copies or
        elsewhere."""
        copies = _copies(function.body, wrong.message)
        if any(span == wrong.span for _, span in copies):
            copies = tuple((why if span == wrong.span else _ANOTHER, span) for why, span in copies)
        return Split(None, (), (*self.refused, *copies))


def split(function: st.Function, target: Target, options: CompileOptions) -> Split:
    """Give every launch that pipelines a warp that loads, where the target has what it takes."""
    if not target.capabilities.has_tma or not machine_of(target).has_wgmma:
        return Split()
    turned_off = next((key for key in _OFF if options[key]), None)
    if turned_off is not None:
        return Split(refused=_copies(function.body, f"`{turned_off.value}` is set"))
    plans: dict[st.Launch, Plan] = {}
    refused: list[tuple[str, Span | None]] = []
    for stmt in function.body:
        if isinstance(stmt, st.Launch):
            try:
                found = plan(function, stmt)
            except Whole as reason:
                refused += _copies(stmt.body, str(reason))
                continue
            if found is not None:
                plans[stmt] = found
    while plans:
        parted = _with(function, plans)
        against = _against(function, parted, plans, target)
        if not any(against.values()):
            notes = [_note(p) for plan in plans.values() for p in plan.pipelines]
            return Split(parted, tuple(notes), tuple(refused))
        for launch, why in against.items():
            if why:
                refused += _copies(launch.body, why)
                del plans[launch]
    return Split(refused=tuple(refused))


def _with(function: st.Function, plans: dict[st.Launch, Plan]) -> st.Function:
    body = tuple(
        Writer(plans[s]).launch() if isinstance(s, st.Launch) and s in plans else s
        for s in function.body
    )
    return replace(function, body=body)


def _against(
    function: st.Function, parted: st.Function, plans: dict[st.Launch, Plan], target: Target
) -> dict[st.Launch, str]:
    """Why each launch that was split should not be."""
    launches = [s for s in function.body if isinstance(s, st.Launch)]
    found = zip(launches, infer_layouts(parted, target).launches, strict=True)
    return {
        launch: why_not(layouts, plans[launch].threads, target)
        for launch, layouts in found
        if launch in plans
    }


def _copies(block: st.Block, why: str) -> tuple[tuple[str, Span | None], ...]:
    """The copies into shared memory of the pipelines in a block, with a reason."""
    return tuple(
        (why, copy.span)
        for loop in st.walk_statements(block)
        if is_pipeline(loop)
        for copy in st.walk_statements(loop.body)
        if is_load(copy)
    )


def _note(pipeline: Pipeline) -> tuple[str, Span | None, str]:
    tiles = ", ".join(
        f"`{tile.name}` x {pipeline.stages}" for load in pipeline.loads for tile in load.tiles
    )
    said = f"a warp of its own loads what the loop over `{pipeline.var.var.name}` computes with"
    return said, pipeline.loop.span, f"versions: {tiles}"
