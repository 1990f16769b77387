"""Do the layouts that the author wrote fit the block and the loop they are for? (TL302, 308, 313)

    with T.Kernel(1, threads=64):
        T.annotate_layout({tile: T.Fragment((128,), lambda i: (i, 0))})     # names thread 127

Asked for every target. What needs only the layout and its buffer is refused where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.layout.fragment import Fragment
from tilelang.program.accesses import walk_with_context
from tilelang.program.arith import constant_value
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Annotate, For, Function, Launch, Stmt, TileOp
from tilelang_diagnostics.model import Diagnostic, Label, Span


def check(function: Function) -> Iterator[Diagnostic]:
    """Annotated fragments, and loops with a layout of their own."""
    for stmt, context in walk_with_context(function.body):
        if isinstance(stmt, Annotate):
            for buffer, layout in stmt.value.items() if stmt.key == "layout" else ():
                if isinstance(layout, Fragment):
                    what = f"`{buffer.name}`"
                    yield from _enough_threads(what, layout, context.launch, stmt.span)
        elif isinstance(stmt, (For, TileOp)):
            layout = stmt.attr("loop_layout")
            if isinstance(layout, Fragment):
                what = "the loop" if isinstance(stmt, For) else f"`T.{stmt.name}`"
                yield from _one_to_one(what, layout, stmt.span)
                yield from _enough_threads(what, layout, context.launch, stmt.span)
                yield from _fits_loop(stmt, layout)


def _one_to_one(what: str, layout: Fragment, span: Span | None) -> Iterator[Diagnostic]:
    """No two iterations in one turn of a thread."""
    clash = layout.clash()
    if clash is None:
        return
    first, second = (f"[{', '.join(map(str, index))}]" for index in clash)
    thread, slot = layout(*clash[0])
    yield make_diagnostic(
        "TL302",
        f"the layout of {what} gives iterations {first} and {second} to thread {thread} as its "
        f"number {slot}",
        span=span,
        help="number the iterations that one thread runs: `lambda i, j: (thread, number)`",
    )


def _enough_threads(
    what: str, layout: Fragment, launch: Launch | None, span: Span | None
) -> Iterator[Diagnostic]:
    if launch is None:
        return
    threads = 1
    for _, extent in launch.threads:
        size = constant_value(extent)
        if size is None:
            return
        threads *= size
    if layout.thread_extent > threads:
        labels = () if launch.span is None else (Label(launch.span, f"{threads} threads a block"),)
        yield make_diagnostic(
            "TL308",
            f"the layout of {what} names thread {layout.thread_extent - 1}, the block has "
            f"{threads} threads",
            span=span,
            labels=labels,
            help=f"spread it over threads 0 to {threads - 1}, or launch with "
            f"threads={layout.thread_extent}",
        )


def _fits_loop(stmt: Stmt, layout: Fragment) -> Iterator[Diagnostic]:
    """Its shape is that of the loop."""
    if not isinstance(stmt, For):
        return
    extents = [constant_value(v.extent) for v in stmt.loop_vars]
    if None in extents or len(extents) != len(layout.shape) or tuple(extents) == layout.shape:
        return
    shown = " x ".join(map(str, extents))
    yield make_diagnostic(
        "TL313",
        f"the loop layout is made for {' x '.join(map(str, layout.shape))} iterations, the loop "
        f"has {shown}",
        span=stmt.span,
        help=f"make it for the shape ({', '.join(map(str, extents))})",
    )
