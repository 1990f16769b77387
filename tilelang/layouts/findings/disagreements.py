"""Do operations want one fragment in different layouts? (TL301, TL304, TL307)

A disagreement that data movement solves is a remark with its cost; one that nothing solves is an
error, and so is a read of what another iteration of the same loop writes. All name every side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilelang.layout.constraints import (
    Access,
    AnyLayout,
    Constraint,
    Fixed,
    Mode,
    Origin,
    Variable,
)
from tilelang.layout.gemm import GemmWarpPolicy
from tilelang.layout.lazy import np
from tilelang.layout.relations import Disagreement, index_facts
from tilelang.layout.solution import Conflict, Conversion, Solution, Via
from tilelang.layouts.builder import Builder
from tilelang.layouts.findings.numbers import places
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

ROWS = 16  # of C that one warp computes at least


def check(solved: Solved) -> Iterator[Diagnostic]:
    """Conflicts and conversions of every group of threads."""
    for builder, solution in solved.groups:
        for conflict in solution.conflicts:
            yield _conflict(builder, solution, conflict)
        for conversion in solution.conversions:
            race = _race(builder, conversion)
            if race is not None:
                yield _cross_thread_read(conversion, *race)
            elif conversion.via is not Via.REGISTERS:
                yield _conversion(builder, conversion)


def _conflict(b: Builder, solution: Solution, conflict: Conflict) -> Diagnostic:
    last = conflict.constraint.origin
    return make_diagnostic(
        "TL301",
        _disagreement(solution, conflict),
        span=last.span,
        label="" if conflict.want is None else f"needs `{conflict.var.name}` as {conflict.want}",
        labels=_sides(b, conflict.origins, last),
        notes=_example(conflict.var.name, conflict.example),
        help=_way_out(conflict),
    )


def _disagreement(solution: Solution, conflict: Conflict) -> str:
    name, constraint = conflict.var.name, conflict.constraint
    if conflict.have is None or conflict.want is None:
        return f"`{name}` gets no layout: {conflict.reason}"
    if _is_combined(constraint) and conflict.example is not None:
        who = places(conflict.example.what, conflict.example.owners)
        return (
            f"`{constraint.origin.op}` is updated by {who} at once, and no layout of `{name}` "
            "combines what they contribute"
        )
    reason = solution.reasons[conflict.var].constraint
    first = "" if reason is None else f" for {reason.origin.op}"
    return (
        f"`{name}` cannot lie both as {conflict.have}{first} and as {conflict.want} for "
        f"{constraint.origin.op}"
    )


def _is_combined(constraint: Constraint) -> bool:
    """Whether several iterations write one element."""
    return isinstance(constraint, Access) and constraint.mode is not Mode.READ


def _way_out(conflict: Conflict) -> str:
    name = conflict.var.name
    if _is_combined(conflict.constraint):
        return (
            f"combine in a `T.alloc_reducer` instead of `{name}`, or `T.reshape` the source and "
            "`T.reduce_sum` it"
        )
    if any("annotate_layout" in o.op or "loop_layout" in o.op for o in conflict.origins):
        return (
            f"leave out the annotation, give each use of `{name}` a fragment of its own, or go "
            "through shared memory"
        )
    return f"give each use of `{name}` a fragment of its own, or go through shared memory"


def _siblings(b: Builder, conversion: Conversion) -> list[Access]:
    """Other elements of the same fragment that the same T.Parallel touches."""
    broken = conversion.constraint
    if not isinstance(broken, Access) or broken.index is None:
        return []
    if not any(n.variable == broken.loop and n.kind == "parallel" for n in b.nests):
        return []
    return [
        other
        for other in b.constraints
        if isinstance(other, Access)
        and (other.loop, other.buffer) == (broken.loop, broken.buffer)
        and other.index is not None
        and other.index != broken.index
    ]


def _race(b: Builder, conversion: Conversion) -> tuple[Access, Access] | None:
    """A read, and the write by which another iteration of the loop changes what it reads."""
    one = conversion.constraint
    for other in _siblings(b, conversion):
        assert isinstance(one, Access)
        for read, write in ((one, other), (other, one)):
            if read.mode is not Mode.WRITE and write.mode is not Mode.READ and _meet(read, write):
                return read, write
    return None


def _meet(read: Access, write: Access) -> bool:
    """Whether an iteration reads an element that another one writes."""
    assert read.index is not None and write.index is not None
    found, changed = (
        index_facts(a.index, a.loop.shape, a.buffer.shape)
        for a in (read, write)
        if a.index is not None
    )
    writer = np.full(found.size, -1)
    numbers = np.arange(len(changed.elements))[:, None]
    writer[changed.elements] = np.broadcast_to(numbers, changed.elements.shape)
    whose = writer[found.elements]
    others = (whose >= 0) & (whose != np.arange(len(found.elements))[:, None])
    return bool((others if found.touched is None else others & found.touched).any())


def _cross_thread_read(conversion: Conversion, read: Access, write: Access) -> Diagnostic:
    name, origin = conversion.var.name, read.origin
    labels: tuple[Label, ...] = ()
    if write.origin.span is not None and write.origin.span != origin.span:
        labels = (Label(write.origin.span, "another iteration writes it here"),)
    return make_diagnostic(
        "TL304",
        f"`{origin.op}` is read while another thread may be writing it",
        span=origin.span,
        label="lies in the registers of another thread",
        labels=labels,
        notes=_example(name, conversion.example),
        help=f"write to a fragment of its own, or do it in two loops: first copy `{name}` to "
        "shared memory, then read from there",
    )


def _conversion(b: Builder, conversion: Conversion) -> Diagnostic:
    name, last = conversion.var.name, conversion.constraint.origin
    constraint = conversion.constraint
    if isinstance(constraint, Access) and constraint.index is None:
        how = f"any thread may need any element of {conversion.source}"
    else:
        target = "" if conversion.target is None else f" to {conversion.target}"
        how = f"from {conversion.source}{target}"
    return make_diagnostic(
        "TL307",
        f"`{name}` goes through {conversion.via.value} for {last.op}: {how}",
        span=last.span,
        label=f"`{name}` is rearranged here",
        labels=_parties(b, conversion),
        notes=(
            *_example(name, conversion.example),
            f"costs a thread about {conversion.cost} instructions",
        ),
        help=_agreement(b, conversion),
    )


def _parties(b: Builder, conversion: Conversion) -> tuple[Label, ...]:
    """Who takes part: what else the same iteration touches of the fragment, and other ops."""
    last = conversion.constraint.origin
    together = [
        Label(o.origin.span, f"the same iteration touches `{o.origin.op}`")
        for o in _siblings(b, conversion)[:1]
        if o.origin.span is not None and o.origin.span != last.span
    ]
    said = {label.span for label in together}
    sides = _sides(b, conversion.origins, last)
    return (*together, *(label for label in sides if label.span not in said))


def _agreement(b: Builder, conversion: Conversion) -> str:
    """What would make the sides agree: two gemms in a row do when no warp splits a row."""
    if _siblings(b, conversion):
        return (
            f"keep `{conversion.var.name}` in shared memory, where threads can read each other's "
            "elements"
        )
    products = [p for p in b.products if p.origin in conversion.origins]
    shared = f"or go through shared memory yourself: copy `{conversion.var.name}` to a shared tile"
    if len(products) < 2:
        return f"give each use a fragment of its own, {shared}"
    warps, rows = b.threads // b.machine.warp, min(p.m for p in products) // ROWS
    fitting = max((w for w in range(1, warps + 1) if rows % w == 0), default=1)
    ways = []
    if fitting != warps:
        ways.append(f"threads={fitting * b.machine.warp}")
    if any(p.policy is not GemmWarpPolicy.FullRow for p in products):
        ways.append("policy=T.GemmWarpPolicy.FullRow for both gemms")
    if not ways:
        return f"give each use a fragment of its own, {shared}"
    return f"use {' and '.join(ways)}, so that each warp computes whole rows, {shared}"


def _sides(b: Builder, origins: Sequence[Origin], primary: Origin) -> tuple[Label, ...]:
    """The other places that take part, with what each fixes."""
    labels = []
    for origin in origins:
        if origin.span is None or origin.span == primary.span:
            continue
        fixed = _fixed_by(b, origin)
        if fixed:
            text = "; ".join(f"`{var.name}` is {layout} here" for var, layout in fixed)
        else:
            text = f"`{origin.op}`"
        labels.append(Label(origin.span, text))
    return tuple(dict.fromkeys(labels))


def _fixed_by(b: Builder, origin: Origin) -> list[tuple[Variable, AnyLayout]]:
    return [(c.var, c.layout) for c in b.constraints if isinstance(c, Fixed) and c.origin == origin]


def _example(name: str, found: Disagreement | None) -> tuple[str, ...]:
    if found is None:
        return ()
    at = ", ".join(map(str, found.element))
    holders, users = (places(found.what, numbers) for numbers in (found.owners, found.used))
    hold, need = ("s" if len(n) == 1 else "" for n in (found.owners, found.used))
    return (f"for example `{name}[{at}]`: {holders} hold{hold} it, {users} need{need} it",)
