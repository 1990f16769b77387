"""Which passes turn a tile function into one that a code generator takes, and in which order?

`PIPELINE` is the whole answer: a pass runs when its `when` holds for the target. Passes never
call each other. Whoever wants to watch (trace, dump, timing, verification) gives an observer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from tilelang.ir import tirx
from tilelang.nested import listening
from tilelang.passes.apply_layouts import apply_layouts
from tilelang.passes.context import PassContext
from tilelang.passes.cpu_prefetch import cpu_prefetch
from tilelang.passes.cpu_threads import cpu_threads
from tilelang.passes.distribute_loops import distribute_loops
from tilelang.passes.fence_proxies import fence_proxies
from tilelang.passes.guard_bounds import guard_bounds
from tilelang.passes.hold_matrices import hold_matrices
from tilelang.passes.init_mbarriers import init_mbarriers
from tilelang.passes.insert_sync import insert_sync
from tilelang.passes.legalize_negative_indices import legalize_negative_indices
from tilelang.passes.lower_async_copies import lower_async_copies
from tilelang.passes.lower_gpu_ops import lower_gpu_ops
from tilelang.passes.lower_tile_ops import lower_tile_ops
from tilelang.passes.name_indices import name_indices
from tilelang.passes.note_deeper_pipelines import note_deeper_pipelines
from tilelang.passes.pipeline_loops import pipeline_loops
from tilelang.passes.place_versions import place_versions
from tilelang.passes.plan_shared import plan_shared
from tilelang.passes.prefetch_operands import prefetch_operands
from tilelang.passes.refuse_divergent_ops import refuse_divergent_ops
from tilelang.passes.refuse_missing_ops import refuse_missing_ops
from tilelang.passes.serialize_dependent import serialize_dependent
from tilelang.passes.simplify import simplify
from tilelang.passes.split_roles import split_roles
from tilelang.passes.stage_stores import stage_stores
from tilelang.passes.tidy import tidy
from tilelang.passes.unswitch_guards import unswitch_guards
from tilelang.passes.vectorize_accesses import vectorize_accesses
from tilelang.watching import Watch

PassFunction: TypeAlias = "Callable[[tirx.PrimFunc, PassContext], tirx.PrimFunc]"


@dataclass(frozen=True, slots=True)
class Pass:
    """One step: what it needs to have happened, what it establishes, and why it stands here."""

    run: PassFunction
    reason: str
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()
    when: Callable[[PassContext], bool] | None = None

    @property
    def name(self) -> str:
        return self.run.__name__

    def applies(self, context: PassContext) -> bool:
        return self.when is None or self.when(context)


def _is_cpu(context: PassContext) -> bool:
    return context.kind == "cpu"


def _is_gpu(context: PassContext) -> bool:
    return context.capabilities.threads_cooperate


def _has_opaque_matrices(context: PassContext) -> bool:
    return context.capabilities.mma == "simdgroup"


def _has_copy_engine(context: PassContext) -> bool:
    return context.capabilities.has_tma


def _guards_accesses(context: PassContext) -> bool:
    return context.options.guard_accesses


def _set(*facts: str) -> frozenset[str]:
    return frozenset(facts)


PIPELINE: tuple[Pass, ...] = (
    Pass(
        split_roles,
        "before anything else: layouts are those of the program it makes",
        gives=_set("roles"),
        when=_has_copy_engine,
    ),
    Pass(
        legalize_negative_indices,
        "while statements are still what the author wrote",
        gives=_set("legal indices"),
    ),
    Pass(
        name_indices,
        "while copies are whole, and before pipelines move them: what they need comes along",
        gives=_set("named indices"),
        when=_is_gpu,
    ),
    Pass(
        cpu_threads,
        "while tile operations are whole: those the block does together stay outside the loops",
        needs=_set("legal indices"),
        gives=_set("no threads"),
        when=_is_cpu,
    ),
    Pass(
        lower_tile_ops,
        "everything below sees only loops and elements",
        needs=_set("legal indices", "no threads"),
        gives=_set("loops"),
        when=_is_cpu,
    ),
    Pass(
        refuse_missing_ops,
        "while operations are called as their author called them",
        gives=_set("known operations"),
        when=_is_gpu,
    ),
    Pass(
        refuse_divergent_ops,
        "while operations are whole, and before they count on the threads of the block",
        needs=_set("legal indices", "known operations"),
        gives=_set("all there"),
        when=_is_gpu,
    ),
    Pass(
        apply_layouts,
        "before anything is lowered: operations lower themselves for the layouts of their tiles",
        needs=_set("legal indices", "known operations", "roles"),
        gives=_set("layouts"),
        when=_is_gpu,
    ),
    Pass(
        pipeline_loops,
        "while copies are whole, and once they know their layouts: copied ones keep them",
        needs=_set("layouts", "named indices"),
        gives=_set("pipelined"),
        when=_is_gpu,
    ),
    Pass(
        hold_matrices,
        "while products are whole, and before copies out of registers are staged: these need none",
        needs=_set("layouts", "pipelined"),
        when=_has_opaque_matrices,
    ),
    Pass(
        stage_stores,
        "while copies are whole, and once pipelines say how much shared memory there is",
        needs=_set("layouts", "pipelined"),
        gives=_set("staged stores"),
        when=_is_gpu,
    ),
    Pass(
        lower_gpu_ops,
        "below there are only parallel loops over tiles, and what one thread does",
        needs=_set("layouts", "staged stores", "all there"),
        gives=_set("loops"),
        when=_is_gpu,
    ),
    Pass(
        guard_bounds,
        "the accesses of lowered copies are guarded like the author's own",
        needs=_set("legal indices", "loops"),
        gives=_set("guarded"),
        when=_guards_accesses,
    ),
    Pass(
        cpu_prefetch,
        "while lowered copies are whole nests; prefetches themselves need no guards",
        needs=_set("loops"),
        gives=_set("prefetches"),
        when=_is_cpu,
    ),
    Pass(
        simplify,
        "decides guards and one-iteration loops before nests are analysed",
        needs=_set("loops", "prefetches"),
        gives=_set("simple"),
        when=_is_cpu,
    ),
    Pass(
        tidy,
        "the same for code that people read: names stay",
        needs=_set("loops"),
        gives=_set("simple"),
        when=_is_gpu,
    ),
    Pass(
        serialize_dependent,
        "a core runs iterations in order, so dependent ones are legal there",
        needs=_set("guarded", "simple"),
        gives=_set("independent"),
        when=_is_cpu,
    ),
    Pass(
        unswitch_guards,
        "once guards are final; inner tiles then vectorise",
        needs=_set("guarded", "independent"),
        when=_is_cpu,
    ),
    Pass(
        distribute_loops,
        "once guards, which are easiest to prove for whole loops, are final",
        needs=_set("layouts", "guarded", "simple"),
        gives=_set("threads"),
        when=_is_gpu,
    ),
    Pass(
        tidy,
        "distribution leaves conditions that are certain, and names that nothing uses",
        needs=_set("threads"),
        gives=_set("simple threads"),
        when=_is_gpu,
    ),
    Pass(
        vectorize_accesses,
        "what it leaves vectorised is exactly what is printed as vectors",
        needs=_set("simple threads"),
        gives=_set("vectors"),
        when=_is_gpu,
    ),
    Pass(
        lower_async_copies,
        "how much a thread moves at a time decides whether a copy can be asynchronous",
        needs=_set("vectors", "pipelined"),
        gives=_set("asynchronous copies"),
        when=_is_gpu,
    ),
    Pass(
        place_versions,
        "once nothing asks any more what is asynchronous, or aligned",
        needs=_set("asynchronous copies"),
        gives=_set("versions"),
        when=_is_gpu,
    ),
    Pass(
        plan_shared,
        "once every buffer has its size",
        needs=_set("versions"),
        gives=_set("places"),
        when=_is_gpu,
    ),
    Pass(
        init_mbarriers,
        "before barriers are placed: what is initialised is waited for by a barrier of the block",
        needs=_set("places"),
        gives=_set("mbarriers"),
        when=_is_gpu,
    ),
    Pass(
        prefetch_operands,
        "where versions lie is known, and barriers are still to come",
        needs=_set("versions", "places"),
        gives=_set("prefetched"),
        when=_is_gpu,
    ),
    Pass(
        insert_sync,
        "once nothing touches shared memory anew: it looks at the addresses used in the end",
        needs=_set("places", "mbarriers", "prefetched"),
        gives=_set("barriers"),
        when=_is_gpu,
    ),
    Pass(
        fence_proxies,
        "fences stand before the barriers that let others go on",
        needs=_set("barriers"),
        gives=_set("fences"),
        when=_is_gpu,
    ),
    Pass(
        note_deeper_pipelines,
        "once every tile has its size and place; it changes nothing",
        needs=_set("places", "fences"),
        when=_is_gpu,
    ),
)


class Observer(Protocol):
    """Watches the pipeline. Passes know nothing of it."""

    def before(self, name: str, func: tirx.PrimFunc, context: PassContext) -> None:
        """`name` is about to run on `func`."""

    def after(self, name: str, func: tirx.PrimFunc, context: PassContext, seconds: float) -> None:
        """`name` has turned its input into `func`."""


def run_pipeline(
    func: tirx.PrimFunc,
    context: PassContext,
    observers: Sequence[Observer] = (),
    passes: Sequence[Pass] = PIPELINE,
) -> tirx.PrimFunc:
    """`func` after every pass that applies to the target of `context`."""
    listeners = [x for x in observers if isinstance(x, Watch)]
    for step in passes:
        if not step.applies(context):
            continue
        for observer in observers:
            observer.before(step.name, func, context)
        started = time.perf_counter()
        with listening(listeners):
            func = step.run(func, context)
        elapsed = time.perf_counter() - started
        for observer in observers:
            observer.after(step.name, func, context, elapsed)
    return func


BEGINNING: Final = "emit"  # the mark of what the front end made


def marks(passes: Sequence[Pass] = PIPELINE) -> list[str]:
    """What each place after a pass is called: by its name, or `tidy:1` and `tidy:2` for one that
    runs twice."""
    names = [step.name for step in passes]
    return [
        name if names.count(name) == 1 else f"{name}:{names[: n + 1].count(name)}"
        for n, name in enumerate(names)
    ]


def passes_after(mark: str, passes: Sequence[Pass] = PIPELINE) -> tuple[Pass, ...]:
    """What is left to do after the pass of a mark; KeyError for one that there is not."""
    if mark == BEGINNING:
        return tuple(passes)
    known = marks(passes)
    if mark not in known:
        raise KeyError(mark)
    return tuple(passes[known.index(mark) + 1 :])


def order_problems(passes: Sequence[Pass] = PIPELINE) -> list[str]:
    """Each need that no earlier pass gives; empty for a sound order."""
    given: set[str] = set()
    problems = []
    for step in passes:
        problems += [f"{step.name} needs {need!r}" for need in sorted(step.needs - given)]
        given |= step.gives
    return problems
