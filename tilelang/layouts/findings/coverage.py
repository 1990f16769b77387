"""Do loops cover their fragments, and the threads their loops? (TL305, TL309)"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tilelang.layout.constraints import Access, Mode, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.loops import full_extents
from tilelang.layout.relations import IndexFacts, index_facts
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import Nest
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

MOST_THREADS: Final = 1024  # of a block, on every GPU


def check(solved: Solved) -> Iterator[Diagnostic]:
    """Loops over a part of a fragment, and loops whose last round leaves threads idle."""
    for builder, solution in solved.groups:
        yield from _smaller_loops(builder)
        yield from _idle_threads(builder, solution.layouts, len(solved.groups) == 1)


def _smaller_loops(b: Builder) -> Iterator[Diagnostic]:
    """The first loop over a fragment writes a part of it; a later one goes over all of it."""
    nests = {nest.variable: nest for nest in b.nests}
    first: dict[Variable, tuple[Access, Nest]] = {}
    filled = {b.variables.get(buffer) for buffer in b.filled}
    reported: set[Variable] = set()
    for one in b.constraints:
        if not isinstance(one, Access) or one.index is None or one.buffer in filled:
            continue
        nest, facts = nests[one.loop], _facts(one)
        known = first.setdefault(one.buffer, (one, nest))
        access, smaller = known
        if smaller is nest or nest.kind != "parallel" or one.buffer in reported:
            continue
        if _covers_a_part(access, smaller) and facts.is_surjective:
            reported.add(one.buffer)
            yield _smaller_loop(access, smaller, nest)


def _covers_a_part(access: Access, nest: Nest) -> bool:
    """Whether a T.Parallel writes the leading elements of a fragment, each once, and no others."""
    if nest.kind != "parallel" or access.mode is Mode.READ or access.index is None:
        return False
    facts = _facts(access)
    leading = access.index.offset(*(0 for _ in access.index.shape)) == 0
    return facts.is_injective and not facts.is_surjective and leading


def _facts(access: Access) -> IndexFacts:
    assert access.index is not None
    return index_facts(access.index, access.loop.shape, access.buffer.shape)


def _smaller_loop(access: Access, smaller: Nest, larger: Nest) -> Diagnostic:
    name, shape = access.buffer.name, access.buffer.shape
    labels = () if larger.span is None else (Label(larger.span, "this one goes over all of it"),)
    return make_diagnostic(
        "TL305",
        f"the first loop over `{name}` covers {math.prod(smaller.extents)} of its "
        f"{math.prod(shape)} elements",
        span=smaller.span,
        label=f"writes a part of `{name}`",
        labels=labels,
        help=f"loop over {' x '.join(map(str, shape))} and guard the body with a condition on "
        f"{smaller.text}",
    )


def _idle_threads(b: Builder, layouts: object, whole: bool) -> Iterator[Diagnostic]:
    """One finding per size of loop; further loops of that size are labels."""
    padded: dict[tuple[int, ...], list[Nest]] = {}
    for nest in b.nests:
        layout = layouts.get(nest.variable)  # type: ignore[attr-defined]
        if nest.kind != "parallel" or not isinstance(layout, Fragment):
            continue
        if layout.size > b.threads and layout.size % b.threads and layout.holes(b.threads):
            padded.setdefault(nest.extents, []).append(nest)
    counts = _counts_that_fit(b) if padded and whole else ()
    for extents, nests in padded.items():
        layout = layouts.get(nests[0].variable)  # type: ignore[attr-defined]
        yield _padded(b, extents, nests, layout, counts)


def _padded(
    b: Builder,
    extents: tuple[int, ...],
    nests: list[Nest],
    layout: Fragment,
    counts: tuple[int, ...],
) -> Diagnostic:
    size, places = math.prod(extents), b.threads * layout.slots
    what = "the extent" if len(extents) == 1 else "the product of the extents"
    also = tuple(Label(n.span, "and here") for n in nests[1:] if n.span is not None)
    return make_diagnostic(
        "TL309",
        f"{size} iterations on {b.threads} threads leave {layout.holes(b.threads)} of {places} "
        "places idle, which a guard keeps from running",
        span=nests[0].span,
        labels=also,
        help=_how_to_fill(b, size, what, counts),
    )


def _counts_that_fit(b: Builder) -> tuple[int, ...]:
    """The nearest numbers of threads, below and above, that are whole warps and leave no round of
    any loop of the block unfinished. None where a product has a say in the number of warps."""
    if b.products:
        return ()
    sizes = {math.prod(nest.extents) for nest in b.nests if nest.kind == "parallel"}
    fitting = [
        count
        for count in range(b.machine.warp, MOST_THREADS + 1, b.machine.warp)
        if all(size % count == 0 or size <= min(count, b.threads) for size in sizes)
    ]
    below = [count for count in fitting if count < b.threads][-1:]
    return (*below, *[count for count in fitting if count > b.threads][:1])


def _how_to_fill(b: Builder, size: int, what: str, counts: tuple[int, ...]) -> str:
    """Other extents for whole warps; first of all whole warps where the threads are none."""
    warp = b.machine.warp
    threads = f"threads={_either(counts)}"
    if b.threads % warp == 0:
        extents = _either(_full(size, b.threads))
        more = f", or use {threads}: whole warps of {warp} that divide {size} evenly"
        return f"make {what} {extents}{more if counts else ''}"
    idle = -b.threads % warp
    why = f"{b.threads} threads leave {idle} of the {warp} lanes of the last warp without work"
    if counts:
        return f"use {threads}: whole warps of {warp} that divide {size} evenly, while {why}"
    use = full_extents(b.threads, warp)[1]
    return f"use threads={use} and make {what} {_either(_full(size, use))}: {why}"


def _full(size: int, threads: int) -> tuple[int, ...]:
    below, above = full_extents(size, threads)
    return tuple(n for n in (below, above, above + threads) if n)


def _either(numbers: tuple[int, ...]) -> str:
    """`2`, `2 or 4`, `2, 4 or 6`."""
    *first, last = map(str, numbers or (0,))
    return f"{', '.join(first)} or {last}" if first else last
