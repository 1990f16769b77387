"""The threads of a block become loops, split where threads wait for each other.

Before: S[tx] = A[tx]; T.sync_threads(); B[tx] = S[127 - tx]
After:  for t in range(128): S[t] = A[t]
        for t in range(128): B[t] = S[127 - t]

Statements that are the same for all threads, tile operations and T.Parallel run once, between the
loops. A private variable that lives across a split gets one element per thread. What threads
exchange (shuffles, votes) goes through arrays. Kernels that never mention a thread stay as they
are, for one core to run once per block.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.visit import collect, with_body
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.cpu_divergence import Divergence, mentions_threads
from tilelang.passes.cpu_emit import emit_skeleton
from tilelang.passes.cpu_grid import split_grid_barriers
from tilelang.passes.cpu_order import keep_threads_in_order
from tilelang.passes.cpu_split import NeedsThreads, Splitter


def cpu_threads(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Replace thread indices by loops in every launch of `func`."""
    try:
        with nested("split_grid_barriers") as made:
            body = split_grid_barriers(func.body)
            made.append(with_body(func, body))
        with nested("threads_to_loops") as made:
            made.append(with_body(func, _launches(body)))
        return made[0]
    except NeedsThreads as reason:
        ctx.report(reason.code, str(reason), reason.span, help=reason.help)
        return func


def _launches(s: Any) -> Any:
    """`s` with each launch in it rewritten."""
    if isinstance(s, tirx.SeqStmt):
        return build.seq([_launches(inner) for inner in s.seq], s.span)
    if not isinstance(s, tirx.AttrStmt):
        return s
    axes: dict[str, tuple[Any, Any]] = {}
    wrappers: list[Any] = []
    body = s
    while isinstance(body, tirx.AttrStmt):
        tag = _thread_tag(body)
        if tag is None:
            wrappers.append(body)
        else:
            axes[tag] = (body.node.var, body.value)
        body = body.body
    if not axes:
        return tirx.AttrStmt(s.node, s.attr_key, s.value, _launches(s.body), s.span)
    rewritten = _block(body, axes, s)
    for wrapper in reversed(wrappers):
        rewritten = tirx.AttrStmt(
            wrapper.node, wrapper.attr_key, wrapper.value, rewritten, wrapper.span
        )
    return rewritten


def _refuse_warp_groups(body: Any) -> None:
    """`with T.ws(...)` gives warp groups different work at the same time."""
    for s in collect(body, tirx.AttrStmt):
        if str(s.attr_key).startswith(attrs.SCOPED + "ws"):
            raise NeedsThreads(
                "`T.ws` needs warp groups that run side by side",
                s.span,
                help="the CPU runs the threads of a block one after the other; "
                "write the roles as consecutive steps",
            )


def _thread_tag(s: Any) -> str | None:
    """Which axis of threads `s` opens, if it does."""
    if str(s.attr_key) != attrs.THREAD_EXTENT:
        return None
    tag = str(s.node.thread_tag)
    return tag if tag in attrs.THREAD_TAGS else None


def _block(body: Any, axes: dict[str, tuple[Any, Any]], launch: Any) -> Any:
    """The code of one block, without threads; `launch` is the whole nest around it."""
    variables = [var for var, _ in axes.values()]
    _refuse_warp_groups(body)
    if not mentions_threads(body, variables):
        return body
    sizes = {tag: build.int_value(extent) for tag, (_, extent) in axes.items()}
    for tag, (var, extent) in axes.items():
        if sizes[tag] is None:
            raise NeedsThreads(
                f"the number of threads along `{var.name}` is only known at run time",
                extent.span or body.span,
                help="give `threads=` constants when the kernel uses the thread index on the CPU",
            )
    ordered = [tag for tag in attrs.THREAD_TAGS if tag in axes]
    counts = [sizes[tag] or 1 for tag in ordered]
    threads = prod(counts)
    with nested("find_hazards"):
        shape = tuple((axes[tag][0], sizes[tag] or 1) for tag in ordered)
        together = Divergence(body, variables, threads).is_collective
        body = keep_threads_in_order(body, shape, launch, together)
    with nested("find_divergence"):
        divergence = Divergence(body, variables, threads)
    with nested("split_at_barriers"):
        splitter = Splitter(divergence)
        nodes = splitter.split(body)

    def indices(t: Any) -> dict[Any, Any]:
        """Each thread index in terms of the linear one, x fastest."""
        found: dict[Any, Any] = {}
        step = 1
        for tag, count in zip(ordered, counts, strict=True):
            value = t
            if step > 1:
                value = tirx.FloorDiv(value, build.const(step, "int32"))
            if step * count < threads:
                value = tirx.FloorMod(value, build.const(count, "int32"))
            var = axes[tag][0]
            found[var] = build.cast(value, build.dtype_of(var))
            step *= count
        return found

    return emit_skeleton(nodes, divergence, splitter.thread, indices, body.span)
