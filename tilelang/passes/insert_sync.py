"""Threads wait for each other where one touches in shared memory what another has, and only there.

Before: A_s[tx] = A[tx]; C[tx] = A_s[63 - tx]
After:  A_s[tx] = A[tx]; T.sync_threads(); C[tx] = A_s[63 - tx]

Where only lanes of the same warp meet, they wait as a warp; where whole warps take a way that
others do not, they wait at a barrier of their own. What cannot be kept apart is TL509.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilelang.analysis.divergence import Divergence
from tilelang.analysis.hazards import Barrier, BarrierPlan, Hazard, Unordered, plan_barriers
from tilelang.analysis.shared_accesses import Access, LaunchTree, launch_tree
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.visit import map_launches, with_body
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.placed_barriers import with_barriers
from tilelang_diagnostics.model import Label


def insert_sync(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Insert the barriers that hazards in shared memory need."""
    return with_body(func, map_launches(func.body, lambda launch: _kept_apart(launch, ctx)))


def _kept_apart(launch: Any, ctx: PassContext) -> Any:
    with nested("read_accesses"):
        tree = launch_tree(launch)
    with nested("find_hazards"):
        plan = plan_barriers(tree, Divergence(tree, launch), ctx.choices.thorough)
    ctx.count("barriers", len(plan.before))
    ctx.count("overlap questions", plan.queries)
    for found in plan.unordered:
        _report(found, ctx)
    for node, barrier in plan.before.items():
        _note(barrier, plan.hazards[node], ctx)
    return _rebuilt(launch, tree, plan) if plan.before else launch


def _rebuilt(s: Any, tree: LaunchTree, plan: BarrierPlan) -> Any:
    """The launch with its barriers."""
    if isinstance(s, tirx.AttrStmt) and str(s.attr_key) == attrs.THREAD_EXTENT:
        return tirx.AttrStmt(s.node, s.attr_key, s.value, _rebuilt(s.body, tree, plan), s.span)
    return with_barriers(s, tree.body, plan.before, _barrier)


def _barrier(barrier: Barrier, span: TirSpan) -> Any:
    if barrier.level == "warp":
        lanes = [] if barrier.mask is None else [build.const(barrier.mask, "uint32", span)]
        return build.evaluate(call("sync_warp", lanes, span=span), span)
    numbers = (barrier.name, barrier.count) if barrier.count else ()
    operands = [build.const(n, "int32", span) for n in numbers]
    return build.evaluate(call("sync_threads", operands, span=span), span)


def _note(barrier: Barrier, hazards: Sequence[Hazard], ctx: PassContext) -> None:
    """The first hazard in full, then what else the barrier keeps in order."""
    who = "the threads of a warp" if barrier.level == "warp" else "the threads of the block"
    who = f"{barrier.count} threads" if barrier.count else who
    first, second = hazards[0]
    done = f"{'reads' if first.kind == 'read' else 'writes'} `{first.name}`"
    why = [f"another thread {done}{_lines([first])}", *_others(hazards[1:])]
    places = [(x, f"`{x.name}` is {_done(x)}") for pair in hazards for x in pair]
    ctx.choices.chose(
        "barrier", f"{who} wait before `{second.name}` is {_done(second)}", from_tir(second.span),
        "; ".join(why),
        tuple(dict.fromkeys(
            (span, text) for x, text in places if (span := from_tir(x.span)) is not None
        )),
    )  # fmt: skip


def _others(hazards: Sequence[Hazard]) -> Iterator[str]:
    """`also K: read in line 75, then written in line 62`, once for each that has to wait."""
    found: dict[tuple[str, str, str], list[Access]] = {}
    for first, second in hazards:
        key = second.name, _done(second), _lines([second])
        found.setdefault(key, []).append(first)
    also = "also "
    for (name, done, lines), earlier in found.items():
        by_kind: dict[tuple[str, str], list[Access]] = {}
        for access in earlier:
            by_kind.setdefault((access.name, _done(access)), []).append(access)
        before = [
            ("" if other == name else f"`{other}` ") + f"{what}{_lines(those)}"
            for (other, what), those in by_kind.items()
        ]  # fmt: skip
        yield f"{also}`{name}`: {' and '.join(before)}, then {done}{lines}"
        also = ""


def _done(access: Access) -> str:
    return "read" if access.kind == "read" else "written"


def _lines(found: Sequence[Access]) -> str:
    """` in line 12`, ` in lines 3 and 12`; nothing of what has no place."""
    spans = [span for access in found if (span := from_tir(access.span)) is not None]
    lines = sorted({span.line for span in spans})
    if not lines:
        return ""
    *some, last = map(str, lines)
    return f" in lines {', '.join(some)} and {last}" if some else f" in line {last}"


def _report(found: Unordered, ctx: PassContext) -> None:
    first, second = found.first, found.second
    what = "written" if second.kind != "read" else "read"
    before = "written" if first.kind != "read" else "read"
    place = from_tir(first.span)
    ctx.report(
        "TL509",
        f"`{second.name}` is {what} where another thread may just have {before} it, and only some "
        "threads come here",
        second.span,
        label=f"{what} here",
        labels=() if place is None else (Label(place, f"{before} here"),),
        help="end the `if` before this statement and begin it again: a barrier goes between",
    )
