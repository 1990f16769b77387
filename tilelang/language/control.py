"""Control flow inside a kernel: `if`, `while` and `with`; `for` is in `for_loops.py`.

What Python already knows is decided while tracing; what only the device knows becomes part of
the program.
"""

from __future__ import annotations

import ast
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tilelang.language import assign, divisions, dropped_tail, expressions, host_calls
from tilelang.language.frame import Frame
from tilelang.language.frames import REDUCE_SCOPE, LaunchFrame, LoopFrame, ScopeFrame
from tilelang.language.operands import is_symbolic
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject, warn
from tilelang.program.expr import BOOL, INT32, Const, Expr, Var
from tilelang.program.indexing import refuse_truth
from tilelang.program.stmt import Block, If, Launch, Scoped, While
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Label

if TYPE_CHECKING:
    from tilelang.language.statements import Flow


class SignatureDone(Exception):
    """The signature of an eager kernel is known; its body is not wanted."""


def execute_if(frame: Frame, node: ast.If) -> Flow:
    """A Python condition picks a branch now; an expression becomes a device branch."""
    from tilelang.language.statements import execute_block

    condition = expressions.evaluate_or_unknown(frame, node.test)
    if isinstance(condition, (Buffer, Region)):
        refuse_truth(condition, frame.span(node.test))
    host_calls.refuse_truth_in_helper(frame, condition)
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
    trace.facts["branches"] = trace.facts.get("branches", 0) + 1
    try:
        for body in (node.body, node.orelse):
            with trace.block() as block, frame.device_region(once=True):
                execute_block(frame, body)
            branches.append(tuple(block))
    finally:
        trace.facts["branches"] -= 1
    trace.emit(If(operators.as_condition(condition), branches[0], branches[1], **position))
    return "next"


def execute_while(frame: Frame, node: ast.While) -> Flow:
    """A device loop; the condition is evaluated anew each time round."""
    from tilelang.language.statements import execute_block

    trace = frame.trace
    position = trace.position()
    condition = expressions.evaluate_or_unknown(frame, node.test)
    host_calls.refuse_truth_in_helper(frame, condition)
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
                help=_changing(node),
            )
        condition = Const(True, BOOL)
    with trace.block() as block, frame.device_region():
        frame.serial_depth += 1
        execute_block(frame, node.body)
        frame.serial_depth -= 1
    trace.emit(While(operators.as_condition(condition), tuple(block), **position))
    return "next"


def _changing(node: ast.While) -> str:
    """How the loop would come to its end: names it only seems to change are Python's."""
    tested = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
    bound = [
        n.id for statement in node.body for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in tested
    ]  # fmt: skip
    if not bound:
        return "make the condition depend on a value the loop changes, or `break`"
    name = bound[0]
    return (
        f"`{name}` has one value while the kernel is traced: declare it before the loop with "
        f'`{name} = T.alloc_var("int32", init=…)`'
    )


def execute_with(frame: Frame, node: ast.With) -> Flow:
    """A launch, a scope of the language, or any Python context manager."""
    return _with_items(frame, node, 0)


def _with_items(frame: Frame, node: ast.With, position: int) -> Flow:
    from tilelang.language.statements import execute_block

    if position == len(node.items):
        return execute_block(frame, node.body)
    item = node.items[position]
    try:
        value = expressions.evaluate(frame, item.context_expr)
    except Reject as rejected:
        # The body is still worth reading: its names would otherwise all look undefined.
        frame.trace.report(divisions.explained(frame, rejected.diagnostic))
        if item.optional_vars is not None:
            assign.forget(frame, item.optional_vars)
        frame.trace.facts["launch_failed"] = True
        return _with_items(frame, node, position + 1)
    match value:
        case LaunchFrame():
            _launch(frame, node, position, value)
            return "next"
        case ScopeFrame(kind="reduce_scope", args=(reducer,)):
            outer = frame.trace.facts.get(REDUCE_SCOPE)
            frame.trace.facts[REDUCE_SCOPE] = reducer
            try:
                return _with_items(frame, node, position + 1)
            finally:
                frame.trace.facts[REDUCE_SCOPE] = outer
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
                help=f"write `for … in {ast.unparse(item.context_expr)}:`"
                if isinstance(value, LoopFrame)
                else "use `T.Kernel(…)`, `T.ws(…)` or a Python context manager",
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
            f"{counted(len(names), 'block name')} for a grid of {len(launch.grid)} axes",
            span=frame.span(item.optional_vars) if item.optional_vars else None,
            labels=() if launch.span is None else (Label(launch.span, "the grid"),),
            help=f"name {counted(len(launch.grid), 'block index')}, one per grid axis",
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
    with trace.block() as block, frame.device_region(once=True):
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
