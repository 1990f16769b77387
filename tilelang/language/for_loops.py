"""`for` inside a kernel: loops of the device, loops that unroll, loops over what is unknown."""

from __future__ import annotations

import ast
from collections.abc import Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang.language import assign, containers, dropped_tail, expressions, loops
from tilelang.language.frame import Frame
from tilelang.language.frames import LaunchFrame, LoopFrame
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Expr, Var
from tilelang.program.stmt import Block, For, If, LoopVar, Stmt, walk_statements
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Label

if TYPE_CHECKING:
    from tilelang.language.statements import Flow

MAX_UNROLLED = 4096


def execute_for(frame: Frame, node: ast.For) -> Flow:
    """Language loops and ranges become device loops; other iterables unroll now."""
    iterable = expressions.evaluate_or_unknown(frame, node.iter)
    if is_unknown(iterable) or expressions.is_symbol(iterable):
        return _visit_once(frame, node)
    if isinstance(iterable, range) and not frame.host:
        iterable = loops.range_loop(iterable.start, iterable.stop, iterable.step)
    if isinstance(iterable, LoopFrame):
        if frame.host:
            return _visit_once(frame, node)
        _device_loop(frame, node, iterable)
        return "next"
    if isinstance(iterable, LaunchFrame):
        iterable.refuse_as_value()
    if isinstance(iterable, (Expr, Buffer, Region, str)) or not hasattr(iterable, "__iter__"):
        shown = ast.unparse(node.iter)
        reject(
            "TL141",
            f"`{shown}` is not a loop",
            span=frame.span(node.iter),
            help="iterate `range(n)`, `T.serial(n)`, `T.Parallel(…)`, or a Python list",
        )
    with frame.trace.at(frame.span(node.iter)):
        items = list(islice(containers.iterate(iterable), MAX_UNROLLED + 1))
    if len(items) > MAX_UNROLLED and not frame.host:
        _too_many(frame, node, iterable)
    return _unrolled(frame, node, items[:MAX_UNROLLED])


def _device_loop(frame: Frame, node: ast.For, loop: LoopFrame) -> None:
    from tilelang.language.statements import execute_block

    trace = frame.trace
    targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
    place = trace.position()
    loop_vars = _loop_variables(frame, node, loop, targets)
    _check_nesting(frame, loop)
    stack: list[LoopFrame] = trace.facts.setdefault("loop_stack", [])
    dropped_tail.warn_if_dropped(frame, node)
    takes_jumps = loop.kind in ("serial", "unroll")
    with trace.block() as block, frame.device_region():
        stack.append(loop)
        trace.facts["parallel_depth"] = sum(f.kind == "parallel" for f in stack)
        saved, frame.serial_depth = frame.serial_depth, frame.serial_depth + 1 if takes_jumps else 0
        try:
            if loop.derive is not None:
                _derived_body(frame, node, loop, loop_vars[0].var)
            else:
                _bind_loop_targets(frame, node, targets, loop_vars)
                execute_block(frame, node.body)
        finally:
            stack.pop()
            trace.facts["parallel_depth"] = sum(f.kind == "parallel" for f in stack)
            frame.serial_depth = saved
    trace.emit(_nest(loop, loop_vars, tuple(block), place))


def _loop_variables(
    frame: Frame, node: ast.For, loop: LoopFrame, targets: list[ast.expr]
) -> tuple[LoopVar, ...]:
    if loop.derive is None and len(targets) != len(loop.ranges):
        if not (len(targets) == 1 and isinstance(node.target, ast.Name)):
            reject(
                "TL144",
                f"{counted(len(targets), 'loop variable')} for "
                f"{counted(len(loop.ranges), 'extent')}",
                span=frame.span(node.target),
                labels=() if loop.span is None else (Label(loop.span, "the extents"),),
                help=f"write {counted(len(loop.ranges), 'loop variable')}",
            )
    out: list[LoopVar] = []
    for position, bounds in enumerate(loop.ranges):
        target = targets[position] if position < len(targets) else targets[0]
        name = target.id if isinstance(target, ast.Name) and loop.derive is None else "wave"
        dtype = bounds.extent.dtype if bounds.extent.dtype.is_integer else INT32
        var = Var(frame.trace.unique(name), dtype, frame.span(target), "loop")
        out.append(LoopVar(var, bounds.start, bounds.extent, bounds.step))
    return tuple(out)


def _bind_loop_targets(
    frame: Frame, node: ast.For, targets: list[ast.expr], loop_vars: tuple[LoopVar, ...]
) -> None:
    variables = tuple(v.var for v in loop_vars)
    if len(targets) == len(variables):
        for target, variable in zip(targets, variables, strict=True):
            assign.bind_target(frame, target, variable)
    else:
        assign.bind_target(frame, node.target, variables)


def _derived_body(frame: Frame, node: ast.For, loop: LoopFrame, variable: Var) -> None:
    """The body of `T.Persistent`: coordinates from the wave, guarded where no tile is left."""
    from tilelang.language.statements import execute_block

    trace = frame.trace
    values, exists = loop.derive(variable)
    place = trace.position()
    with trace.block() as block:
        assign.assign_target(frame, node.target, values)
        execute_block(frame, node.body)
    trace.emit(If(operators.as_condition(exists), tuple(block), (), **place))


def _nest(
    loop: LoopFrame, loop_vars: tuple[LoopVar, ...], body: Block, place: dict[str, Any]
) -> Stmt:
    if loop.nested and len(loop_vars) > 1:
        inner: Stmt = For(loop.kind, loop_vars[-1:], body, loop.attrs, **place)
        for loop_var in reversed(loop_vars[:-1]):
            inner = For(loop.kind, (loop_var,), (inner,), loop.attrs, **place)
        return inner
    if loop.kind == "parallel" and len(body) == 1 and isinstance(body[0], For):
        only = body[0]
        if only.kind == "parallel":  # directly nested T.Parallel loops are one nest
            return For("parallel", (*loop_vars, *only.loop_vars), only.body, loop.attrs, **place)
    if loop.kind == "parallel":
        _check_no_inner_parallel(body, loop)
    return For(loop.kind, loop_vars, body, loop.attrs, **place)


def _check_no_inner_parallel(body: Block, outer: LoopFrame) -> None:
    """Only directly nested T.Parallel loops merge; with statements between them they cannot."""
    for stmt in walk_statements(body):
        if isinstance(stmt, For) and stmt.kind == "parallel":
            labels = (Label(outer.span, "inside this one"),) if outer.span else ()
            reject(
                "TL242",
                "`T.Parallel` inside `T.Parallel` with other statements between them",
                span=stmt.span,
                label="nested parallel loop",
                labels=labels,
                help="write one `T.Parallel` over both extents, or make one of the loops serial",
            )


def _check_nesting(frame: Frame, loop: LoopFrame) -> None:
    if frame.trace.facts.get("parallel_depth", 0) and loop.kind == "pipelined":
        reject(
            "TL243",
            "`T.Pipelined` inside `T.Parallel`",
            label="a pipeline is run by the whole block",
            help="put the pipelined loop outside",
        )


def _too_many(frame: Frame, node: ast.For, iterable: Any) -> NoReturn:
    count = len(iterable) if isinstance(iterable, Sized) else f"more than {MAX_UNROLLED}"
    reject(
        "TL148",
        f"{count} iterations are unrolled while tracing",
        span=frame.span(node.iter),
        help="iterate `T.serial(n)` to keep the loop rolled",
    )


def _unrolled(frame: Frame, node: ast.For, items: list[Any]) -> Flow:
    from tilelang.language.statements import execute_block

    for item in items:
        assign.bind_target(frame, node.target, item)
        flow = execute_block(frame, node.body)
        if flow == "break":
            break
        if flow == "return":
            return flow
    else:
        return execute_block(frame, node.orelse)
    return "next"


def _visit_once(frame: Frame, node: ast.For) -> Flow:
    """A loop over something unknown: its body is checked once with unknown targets."""
    stack: list[LoopFrame] = frame.trace.facts.setdefault("loop_stack", [])
    if ast.unparse(node.iter).split("(")[0].endswith(".Parallel"):
        stack.append(LoopFrame("parallel", (), frame.span(node.iter)))
        frame.trace.facts["parallel_depth"] = frame.trace.facts.get("parallel_depth", 0) + 1
        try:
            return _visit_body(frame, node)
        finally:
            stack.pop()
            frame.trace.facts["parallel_depth"] -= 1
    return _visit_body(frame, node)


def _visit_body(frame: Frame, node: ast.For) -> Flow:
    from tilelang.language.statements import execute_block

    assign.forget(frame, node.target)
    for name in ast.walk(node.target):
        if isinstance(name, ast.Name):
            frame.bind(name.id, Unknown(name.id), frame.span(name))
    frame.trace.speculative += 1
    frame.trace.complete = False
    try:
        execute_block(frame, node.body)
    finally:
        frame.trace.speculative -= 1
    return "next"
