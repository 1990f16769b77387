"""Do operations want one fragment in different layouts? (TL301, TL304, TL307)

A disagreement that data movement solves is a remark with its cost; one inside a single loop is a
read of another thread's registers; one that nothing solves is an error. All name every side.
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
from tilelang.layout.relations import Disagreement
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
            other = _sibling(builder, conversion)
            if other is not None:
                yield _cross_thread_read(conversion, other)
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


def _sibling(b: Builder, conversion: Conversion) -> Access | None:
    """Another element of the same fragment that the same T.Parallel touches."""
    broken = conversion.constraint
    if not isinstance(broken, Access) or broken.mode is not Mode.READ or broken.index is None:
        return None
    if not any(n.variable == broken.loop and n.kind == "parallel" for n in b.nests):
        return None
    for other in b.constraints:
        if isinstance(other, Access) and (other.loop, other.buffer) == (broken.loop, broken.buffer):
            if other is not broken and other.index is not None and other.index != broken.index:
                return other
    return None


def _cross_thread_read(conversion: Conversion, other: Access) -> Diagnostic:
    name, origin = conversion.var.name, conversion.constraint.origin
    labels: tuple[Label, ...] = ()
    if other.origin.span is not None and other.origin.span != origin.span:
        labels = (Label(other.origin.span, f"the same iteration touches `{other.origin.op}`"),)
    return make_diagnostic(
        "TL304",
        f"`{origin.op}` is read by a thread that does not hold it",
        span=origin.span,
        label="lies in the registers of another thread",
        labels=labels,
        notes=_example(name, conversion.example),
        help=f"keep `{name}` in shared memory, where threads can read each other's elements",
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
        labels=_sides(b, conversion.origins, last),
        notes=(
            *_example(name, conversion.example),
            f"costs a thread about {conversion.cost} instructions",
        ),
        help=_agreement(b, conversion),
    )


def _agreement(b: Builder, conversion: Conversion) -> str:
    """What would make the sides agree: two gemms in a row do when no warp splits a row."""
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
