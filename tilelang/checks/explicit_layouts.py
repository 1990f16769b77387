"""Are the layouts that the author wrote layouts at all? (TL302, TL308, TL313)

    T.annotate_layout({tile: T.Layout((32, 32), lambda i, j: i + j)})   # [0, 1] and [1, 0] collide

Asked for every target: a layout must be one to one even where only one thread reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layouts.rules.annotation import given
from tilelang.program.accesses import walk_with_context
from tilelang.program.arith import constant_value
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Annotate, For, Function, Launch, Stmt, TileOp
from tilelang_diagnostics.model import Diagnostic, Label, Span


def check(function: Function) -> Iterator[Diagnostic]:
    """Annotated buffers and loops."""
    for stmt, context in walk_with_context(function.body):
        if isinstance(stmt, Annotate):
            for buffer, layout in given(stmt).items():
                yield from _one_to_one(f"`{buffer.name}`", layout, stmt.span, _declared(buffer))
                yield from _enough_threads(f"`{buffer.name}`", layout, context.launch, stmt.span)
        layout = _loop_layout(stmt)
        if isinstance(layout, Fragment):
            what = "this loop" if isinstance(stmt, For) else f"`T.{_name(stmt)}`"
            yield from _one_to_one(what, layout, stmt.span, ())
            yield from _enough_threads(what, layout, context.launch, stmt.span)
            yield from _fits_loop(stmt, layout)


def _one_to_one(
    what: str, layout: Layout | Fragment, span: Span | None, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    """No two elements in one place, or in one register of a thread."""
    if isinstance(layout, Fragment):
        clash = layout.clash()
        place = "register of a thread"
    else:
        clash = layout.collision()
        place = "place"
    if clash is None:
        return
    first, second = (f"[{', '.join(map(str, index))}]" for index in clash)
    where = f"{layout(*clash[0])}"
    yield make_diagnostic(
        "TL302",
        f"the layout of {what} puts {first} and {second} into one {place}",
        span=span,
        label=f"both go to {where}",
        labels=labels,
        help="give every element a place of its own, for example row-major with xored columns: "
        "`lambda i, j: (i, j ^ i)`"
        if isinstance(layout, Layout)
        else "number the elements that one thread holds: `lambda i, j: (thread, register)`",
    )


def _enough_threads(
    what: str, layout: Layout | Fragment, launch: Launch | None, span: Span | None
) -> Iterator[Diagnostic]:
    if not isinstance(layout, Fragment) or launch is None:
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


def _loop_layout(stmt: Stmt) -> object:
    if isinstance(stmt, For) and stmt.kind == "parallel":
        return stmt.attr("loop_layout")
    if isinstance(stmt, TileOp):
        return stmt.attr("loop_layout")
    return None


def _name(stmt: Stmt) -> str:
    return stmt.name if isinstance(stmt, TileOp) else ""


def _declared(buffer: Buffer) -> tuple[Label, ...]:
    if buffer.span is None:
        return ()
    shape = " x ".join(str(d) for d in buffer.shape)
    return (Label(buffer.span, f"`{buffer.name}` is {shape}"),)
