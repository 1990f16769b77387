"""Control flow inside a kernel: `if`, `for`, `while` and `with`.

What Python already knows is decided while tracing; what only the device knows becomes part of
the program.
"""

from __future__ import annotations

import ast
from collections.abc import Sized
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang.language import assign, dropped_tail, expressions, loops
from tilelang.language.frame import Frame
from tilelang.language.frames import LaunchFrame, LoopFrame, ScopeFrame
from tilelang.language.operands import is_symbolic
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject, warn
from tilelang.program.expr import BOOL, INT32, Const, Expr, Var
from tilelang.program.stmt import (
    Block,
    For,
    If,
    Launch,
    LoopVar,
    Scoped,
    Stmt,
    While,
    walk_statements,
)
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics.model import Label

if TYPE_CHECKING:
    from tilelang.language.statements import Flow

MAX_UNROLLED = 4096


class SignatureDone(Exception):
    """The signature of an eager kernel is known; its body is not wanted."""


def execute_if(frame: Frame, node: ast.If) -> Flow:
    """A Python condition picks a branch now; an expression becomes a device branch."""
    from tilelang.language.statements import execute_block

    condition = _evaluate_or_unknown(frame, node.test)
    if isinstance(condition, (Buffer, Region)):
        name = condition.name if isinstance(condition, Buffer) else condition.buffer.name
        reject(
            "TL150",
            f"buffer `{name}` is used as a condition",
            span=frame.span(node.test),
            label="a whole buffer is neither true nor false",
            help=f"test an element: `if {name}[i] != 0:`",
        )
    if is_symbolic(condition):
        return _both_branches(frame, node)
    if isinstance(condition, Const):
        condition = bool(condition.value)
    if not isinstance(condition, Expr):
        if not isinstance(condition, (bool, int, float, type(None), str, tuple, list, dict, set)):
            warn("TL153", f"condition `{ast.unparse(node.test)}` is neither a number nor a bool",
                 span=frame.span(node.test),
                 help="compare it, for example `is not None`")  # fmt: skip
        return execute_block(frame, node.body if condition else node.orelse)
    trace = frame.trace
    position = trace.position()
    branches: list[Block] = []
    for body in (node.body, node.orelse):
        with trace.block() as block, frame.device_region():
            execute_block(frame, body)
        branches.append(tuple(block))
    trace.emit(If(operators.as_condition(condition), branches[0], branches[1], **position))
    return "next"


def execute_for(frame: Frame, node: ast.For) -> Flow:
    """Language loops and ranges become device loops; other iterables unroll now."""
    iterable = _evaluate_or_unknown(frame, node.iter)
    if is_unknown(iterable) or expressions.is_symbol(iterable):
        return _visit_once(frame, node)
    if isinstance(iterable, range) and not frame.host:
        iterable = loops.range_loop(iterable.start, iterable.stop, iterable.step)
    if isinstance(iterable, LoopFrame):
        if frame.host:
            return _visit_once(frame, node)
        _device_loop(frame, node, iterable)
        return "next"
    if isinstance(iterable, (Expr, Buffer, Region, str)) or not hasattr(iterable, "__iter__"):
        shown = ast.unparse(node.iter)
        reject(
            "TL141",
            f"`{shown}` is not a loop",
            span=frame.span(node.iter),
            help="iterate `range(n)`, `T.serial(n)`, `T.Parallel(…)`, or a Python list",
        )
    with frame.trace.at(frame.span(node.iter)):
        items = list(islice(expressions.iterate(iterable), MAX_UNROLLED + 1))
    if len(items) > MAX_UNROLLED and not frame.host:
        _too_many(frame, node, iterable)
    return _unrolled(frame, node, items[:MAX_UNROLLED])


def execute_while(frame: Frame, node: ast.While) -> Flow:
    """A device loop; the condition is evaluated anew each time round."""
    from tilelang.language.statements import execute_block

    trace = frame.trace
    position = trace.position()
    condition = _evaluate_or_unknown(frame, node.test)
    if is_unknown(condition) or frame.host:
        frame.trace.speculative += 1
        execute_block(frame, node.body)
        frame.trace.speculative -= 1
        return "next"
    if not isinstance(condition, Expr) or isinstance(condition, Const):
        known = condition.value if isinstance(condition, Const) else condition
        if not known:
            warn(
                "TL140",
                f"`while {ast.unparse(node.test)}` never runs",
                span=frame.span(node.test),
                help="test something the kernel computes, such as an `alloc_var`",
            )
            return "next"
        if not any(isinstance(n, ast.Break) for n in ast.walk(node)):
            reject(
                "TL139",
                f"`while {ast.unparse(node.test)}` never ends",
                span=frame.span(node.test),
                help="make the condition depend on a value the loop changes, or `break`",
            )
        condition = Const(True, BOOL)
    with trace.block() as block, frame.device_region():
        frame.serial_depth += 1
        execute_block(frame, node.body)
        frame.serial_depth -= 1
    trace.emit(While(operators.as_condition(condition), tuple(block), **position))
    return "next"


def execute_with(frame: Frame, node: ast.With) -> Flow:
    """A launch, a scope of the language, or any Python context manager."""
    return _with_items(frame, node, 0)


def _evaluate_or_unknown(frame: Frame, node: ast.expr) -> Any:
    """The value of a condition or iterable; after an error unknown, so the body is still read."""
    try:
        return expressions.evaluate(frame, node)
    except Reject as rejected:
        frame.trace.report(rejected.diagnostic)
        return Unknown("condition")


def _with_items(frame: Frame, node: ast.With, position: int) -> Flow:
    from tilelang.language.statements import execute_block

    if position == len(node.items):
        return execute_block(frame, node.body)
    item = node.items[position]
    try:
        value = expressions.evaluate(frame, item.context_expr)
    except Reject as rejected:
        # The body is still worth reading: its names would otherwise all look undefined.
        frame.trace.report(rejected.diagnostic)
        if item.optional_vars is not None:
            assign.forget(frame, item.optional_vars)
        frame.trace.facts["launch_failed"] = True
        return _with_items(frame, node, position + 1)
    match value:
        case LaunchFrame():
            _launch(frame, node, position, value)
            return "next"
        case ScopeFrame():
            with frame.trace.block() as block:
                _with_items(frame, node, position + 1)
            scoped = Scoped(value.kind, value.args, tuple(block), **frame.trace.position())
            frame.trace.emit(scoped)
            return "next"
        case Unknown():
            frame.trace.facts["launch_failed"] = True
            if item.optional_vars is not None:
                assign.forget(frame, item.optional_vars)
            return _with_items(frame, node, position + 1)
        case _ if hasattr(value, "__enter__") and not frame.static:
            with ExitStack() as stack:
                entered = stack.enter_context(value)
                if item.optional_vars is not None:
                    assign.assign_target(frame, item.optional_vars, entered)
                return _with_items(frame, node, position + 1)
        case _:
            reject(
                "TL116",
                f"`{ast.unparse(item.context_expr)}` cannot be used with `with`",
                span=frame.span(item.context_expr),
                help="use `T.Kernel(…)`, `T.ws(…)` or a Python context manager",
            )


def _launch(frame: Frame, node: ast.With, position: int, launch: LaunchFrame) -> None:
    trace = frame.trace
    dropped_tail.warn_if_dropped(frame, node)
    if trace.facts.get("signature_only"):
        raise SignatureDone
    item = node.items[position]
    place = trace.position()
    names = _target_names(item.optional_vars)
    if len(names) > 1 and len(names) != len(launch.grid):
        reject(
            "TL166",
            f"{len(names)} block names for a grid of {len(launch.grid)} axes",
            span=frame.span(item.optional_vars) if item.optional_vars else None,
            labels=() if launch.span is None else (Label(launch.span, "the grid"),),
            help=f"name {len(launch.grid)} block index(es), one per grid axis",
        )
    axis_names = names if len(names) == len(launch.grid) else [f"b{a}" for a in "xyz"]
    launch.blocks = tuple(
        (
            Var(
                trace.unique(axis_names[n]),
                INT32,
                _target_span(frame, item.optional_vars, n),
                "block",
            ),
            e,
        )
        for n, e in enumerate(launch.grid)
    )
    launch.threads = tuple(
        (Var(trace.unique(f"t{'xyz'[n]}"), INT32, None, "thread"), e)
        for n, e in enumerate(launch.block)
    )
    with trace.block() as block, frame.device_region():
        trace.launch = launch
        try:
            if item.optional_vars is not None:
                variables = tuple(v for v, _ in launch.blocks)
                assign.bind_target(
                    frame, item.optional_vars,
                    variables[0] if isinstance(item.optional_vars, ast.Name) and len(variables) == 1
                    else variables,
                )  # fmt: skip
            _with_items(frame, node, position + 1)
        finally:
            trace.launch = None
    trace.emit(Launch(launch.blocks, launch.threads, tuple(block), launch.attrs, **place))


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
                f"{len(targets)} loop variable(s) for {len(loop.ranges)} extent(s)",
                span=frame.span(node.target),
                labels=() if loop.span is None else (Label(loop.span, "the extents"),),
                help=f"write {len(loop.ranges)} loop variable(s)",
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


def _both_branches(frame: Frame, node: ast.If) -> Flow:
    """A condition the text alone does not decide: read both branches, keep what agrees."""
    from tilelang.language.statements import execute_block

    before = dict(frame.names)
    outcomes: list[dict[str, Any]] = []
    returned: list[Any] = []
    frame.trace.speculative += 1
    frame.trace.complete = False
    flows: list[str] = []
    try:
        for body in (node.body, node.orelse):
            frame.names = dict(before)
            frame.returned = None
            flows.append(execute_block(frame, body))
            outcomes.append(frame.names)
            returned.append(frame.returned)
    finally:
        frame.trace.speculative -= 1
    frame.returned = next((r for r in returned if r is not None), None)
    merged: dict[str, Any] = {}
    for name in {**outcomes[0], **outcomes[1]}:
        first, second = outcomes[0].get(name), outcomes[1].get(name)
        local = first or second
        if first is not None and second is not None and first.value is not second.value:
            both_plain = not isinstance(first.value, (Buffer, Expr)) and first.value == second.value
            if not both_plain and not isinstance(first.value, Buffer):
                first.value = Unknown(name)
        merged[name] = local
    frame.names = merged
    return "return" if flows == ["return", "return"] else "next"


def _target_names(target: ast.expr | None) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [e.id if isinstance(e, ast.Name) else f"b{n}" for n, e in enumerate(target.elts)]
    return []


def _target_span(frame: Frame, target: ast.expr | None, position: int) -> Any:
    if isinstance(target, (ast.Tuple, ast.List)) and position < len(target.elts):
        return frame.span(target.elts[position])
    return None if target is None else frame.span(target)
