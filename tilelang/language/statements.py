"""Statements inside a kernel: one function per kind of AST node.

An error ends only its own statement: the diagnostic is recorded, the names it would have bound
become unknown, and interpretation goes on with the next one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Literal

from tilelang.dtypes import DType
from tilelang.language import (
    assign,
    control,
    divisions,
    expressions,
    for_loops,
    host_calls,
    hosting,
    inlining,
)
from tilelang.language.frame import Frame
from tilelang.language.frames import LoopFrame
from tilelang.language.operands import is_symbolic
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject, warn
from tilelang.program.expr import Const, Expr, Intrinsic, walk
from tilelang.program.indexing import refuse_truth
from tilelang.program.stmt import Assert, Evaluate, Jump
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Label, Span

Flow = Literal["next", "return", "break", "continue"]

MAX_STATEMENTS = 200_000


def execute_block(frame: Frame, body: list[ast.stmt]) -> Flow:
    """Interpret statements in order; tells how control left the block."""
    for position, node in enumerate(body):
        flow = execute(frame, node)
        if flow != "next":
            rest = body[position + 1 :]
            ended_by_error = isinstance(frame.returned, Unknown)
            if rest and not (frame.host or frame.speculative or ended_by_error):
                warn(
                    "TL146",
                    "this statement is never reached",
                    span=frame.span(rest[0]),
                    label=f"after `{'raise' if isinstance(node, ast.Raise) else flow}`",
                    help="remove it, or put it before",
                )
            return flow
    return "next"


def execute(frame: Frame, node: ast.stmt) -> Flow:
    """Interpret one statement, recovering from an error in it."""
    handler = _STATEMENTS.get(type(node))
    trace = frame.trace
    trace.span = _header_span(frame, node)
    _check_size(frame)
    try:
        if handler is None:
            keyword, help = _MISSING.get(type(node).__name__, (type(node).__name__, _OUTSIDE))
            reject("TL130", f"`{keyword}` is not part of the language", help=help)
        return handler(frame, node)
    except inlining.HelperRaised:
        if not frame.host or frame.depth > 0:
            raise
        _forget(frame, node)
        return "next"
    except (Reject, CompileError) as failed:
        found = (failed.diagnostic,) if isinstance(failed, Reject) else failed.diagnostics
        for diagnostic in found:
            trace.report(divisions.explained(frame, diagnostic))
        _forget(frame, node)
        if isinstance(node, ast.Return):
            frame.returned = Unknown("return value")
            return "return"
        return "next"


def _expression(frame: Frame, node: ast.Expr) -> Flow:
    if isinstance(node.value, ast.Constant):
        return "next"  # docstrings and `...`
    value = expressions.evaluate(frame, node.value)
    if isinstance(value, LoopFrame) and not frame.host:
        value.refuse_as_value()
    if frame.host or not isinstance(value, Expr):
        enter = getattr(value, "enter_open", None)
        if enter is not None:
            enter(frame)
        return "next"
    if any(isinstance(inner, Intrinsic) for inner in walk(value)):
        frame.trace.emit(Evaluate(value, **frame.trace.position()))
    elif not isinstance(node.value, ast.Call):
        warn(
            "TL149",
            f"the value of `{ast.unparse(node.value)}` is not used",
            help="assign it or store it, or drop the line",
        )
    return "next"


def _assign(frame: Frame, node: ast.Assign) -> Flow:
    assign.assign(frame, node)
    return "next"


def _augmented(frame: Frame, node: ast.AugAssign) -> Flow:
    assign.augmented(frame, node)
    return "next"


def _annotated(frame: Frame, node: ast.AnnAssign) -> Flow:
    if node.value is None:
        if frame.on_annotate is not None and frame.on_annotate(frame, node):
            return "next"
        return "next"
    name = node.target.id if isinstance(node.target, ast.Name) else None
    value = expressions.assign_name_of(frame, node.value, name)
    _warn_annotation(frame, node, value)
    assign.assign_target(frame, node.target, value, fresh=isinstance(node.value, ast.Call))
    return "next"


def _warn_annotation(frame: Frame, node: ast.AnnAssign, value: Any) -> None:
    """`x: T.float16 = A[i]` names a dtype and converts nothing."""
    if frame.host or not isinstance(value, Expr) or isinstance(value, Const):
        return
    try:
        wanted = expressions.evaluate(frame, node.annotation)
    except Reject:
        return  # Python does not evaluate annotations of local names either
    if not isinstance(wanted, DType) or wanted == value.dtype or value.dtype.kind == "symbol":
        return
    name = ast.unparse(node.target)
    text = ast.unparse(node.annotation)
    warn(
        "TL155",
        f"`{name}` stays {value.dtype}: its annotation `{text}` converts nothing",
        span=frame.span(node.annotation),
        label="has no effect",
        help=f"write `{name} = T.cast(…, {text})`, or `T.alloc_var({text})` for a variable",
    )


def _assert(frame: Frame, node: ast.Assert) -> Flow:
    condition = expressions.evaluate(frame, node.test)
    message = "" if node.msg is None else str(expressions.evaluate(frame, node.msg))
    if is_unknown(condition):
        return "next"
    if isinstance(condition, (Buffer, Region)):
        refuse_truth(condition, frame.span(node.test))
    host_calls.refuse_truth_in_helper(frame, condition)
    if not isinstance(condition, Expr) or isinstance(condition, Const):
        truth = condition.value if isinstance(condition, Const) else condition
        if not truth and not frame.speculative:
            tail = f": {message}" if message else ""
            reject(
                "TL184",
                f"`assert {ast.unparse(node.test)}` is false{tail}",
                help="change the values the kernel is made with, or the assertion",
            )
        return "next"
    if frame.host or (frame.static and is_symbolic(condition)):
        return "next"
    text = message or ast.unparse(node.test)
    frame.trace.emit(Assert(operators.as_condition(condition), text, **frame.trace.position()))
    return "next"


def _return(frame: Frame, node: ast.Return) -> Flow:
    if frame.region and not frame.host:
        if node.value is not None and frame.trace.launch is not None and not frame.is_macro:
            reject(
                "TL136",
                f"`return {ast.unparse(node.value)}` inside `with T.Kernel(…)`",
                label="each thread of the launch would come by here",
                help="put it after the `with` block, at its indentation",
            )
        reject(
            "TL136",
            "`return` inside device control flow",
            label="not every thread would reach the rest",
            help="use `T.thread_return()` to end this thread, or restructure with `if`/`else`",
        )
    if frame.depth == 0 and not frame.host and not frame.is_macro:
        _refuse_numbers(frame, node)
    value = None if node.value is None else expressions.evaluate(frame, node.value)
    frame.returned = value
    return "return"


def _refuse_numbers(frame: Frame, node: ast.Return) -> None:
    """TL137 for a value of the launch among what a kernel returns."""
    for element in node.value.elts if isinstance(node.value, ast.Tuple) else (node.value,):
        local = frame.expired.get(element.id) if isinstance(element, ast.Name) else None
        if element is None or local is None or not isinstance(local.value, Expr):
            continue
        reject(
            "TL137",
            f"`{ast.unparse(element)}` is a number of the launch; a kernel returns tensors only",
            span=frame.span(element),
            labels=(Label(local.span, "bound here"),),
            help="return tensors made by `T.empty`; write other results to one of them",
        )


def _pass(frame: Frame, node: ast.Pass) -> Flow:
    return "next"


def _jump(frame: Frame, node: ast.Break | ast.Continue) -> Flow:
    kind: Literal["break", "continue"] = "break" if isinstance(node, ast.Break) else "continue"
    if frame.host or frame.serial_depth == 0:
        if frame.region and not frame.host:
            reject(
                "TL147",
                f"`{kind}` where no serial loop can take it",
                help="use it inside `T.serial`, `range` or `while`, or guard the body with `if`",
            )
        return kind
    frame.trace.emit(Jump(kind, **frame.trace.position()))
    return kind


def _raise(frame: Frame, node: ast.Raise) -> Flow:
    """Ends the helper that raises and the kernel statement that called it."""
    if frame.host and frame.depth == 0 and not frame.speculative:
        return "next"  # a factory refuses these values; its kernel is still worth reading
    frame.returned = Unknown("raised")
    if frame.speculative:
        return "return"
    if frame.trace.facts.get("branches") and not frame.host:
        reject(
            "TL130",
            "`raise` in a branch that is decided when the kernel runs",
            label="there are no exceptions on a device",
            help="stop the kernel with `T.device_assert(condition, message)`",
        )
    error = None if node.exc is None else expressions.evaluate(frame, node.exc)
    if frame.host:
        raise inlining.HelperRaised(frame.function, _exception_text(node, error), frame.trace.span)
    warn(
        "TL183",
        f"the kernel raises {_exception_text(node, error)} while it is traced",
        help="raise in the function that makes the kernel, before there is one",
    )
    return "return"


def _exception_text(node: ast.Raise, error: Any) -> str:
    """`ValueError: why`, as far as the text tells."""
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, type) and issubclass(error, BaseException):
        return error.__name__
    return "an exception" if node.exc is None else ast.unparse(node.exc)


def _delete(frame: Frame, node: ast.Delete) -> Flow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)
    return "next"


def _forget(frame: Frame, node: ast.stmt) -> None:
    """After an error every name the statement would have bound exists, with an unknown value."""
    for inner in ast.walk(node):
        match inner:
            case ast.Name(ctx=ast.Store()):
                assign.forget(frame, inner)
            case ast.alias(name=name, asname=asname):
                assign.forget_name(frame, asname or name.split(".")[0], frame.span(inner))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                assign.forget_name(frame, name, frame.span(inner))
            case _:
                pass


def _header_span(frame: Frame, node: ast.stmt) -> Span:
    """The span of a statement; of a compound statement only its header."""
    span = frame.span(node)
    match node:
        case ast.For(iter=end) | ast.While(test=end) | ast.If(test=end):
            return span.to(frame.span(end))
        case ast.With(items=items):
            return span.to(frame.span(items[-1].optional_vars or items[-1].context_expr))
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            keyword = "def" if isinstance(node, ast.FunctionDef) else "class"
            width = len(keyword) + 1 + len(name)
            return Span(span.file, node.lineno, span.column, node.lineno, span.column + width)
        case ast.Try():
            return Span(span.file, span.line, span.column, span.line, span.column + len("try"))
        case _:
            return span


def _check_size(frame: Frame) -> None:
    count = frame.trace.facts.get("statements", 0) + 1
    frame.trace.facts["statements"] = count
    if count > MAX_STATEMENTS:
        raise TooLarge(f"grows beyond {MAX_STATEMENTS} statements")


class TooLarge(Exception):
    """Unrolling or inlining made the kernel too large; how, for the front end's TL148."""


_OUTSIDE = "do it in Python, outside the kernel"
# What the language lacks: its keyword, and the way out.
_MISSING = {
    "Global": ("global", "hold the value in a buffer, or in `T.alloc_var`"),
    "Nonlocal": ("nonlocal", "hold the value in a buffer, or in `T.alloc_var`"),
    "Match": ("match", "write `if`, `elif` and `else`"),
    "AsyncFor": ("async for", "write `for`; `T.Pipelined` overlaps copies with work"),
    "AsyncWith": ("async with", "write `with`"),
    "AsyncFunctionDef": ("async def", "define a function outside with `@T.macro`"),
    "TryStar": ("try", "exceptions do not exist on devices"),
    "TypeAlias": ("type", _OUTSIDE),
}
_STATEMENTS: dict[type[ast.stmt], Callable[[Frame, Any], Flow]] = {
    ast.Expr: _expression, ast.Assign: _assign, ast.AugAssign: _augmented,
    ast.AnnAssign: _annotated, ast.Assert: _assert, ast.Return: _return, ast.Pass: _pass,
    ast.Break: _jump, ast.Continue: _jump, ast.Raise: _raise, ast.Delete: _delete,
    ast.If: control.execute_if, ast.For: for_loops.execute_for, ast.While: control.execute_while,
    ast.With: control.execute_with,
    ast.FunctionDef: hosting.execute_def, ast.Import: hosting.execute_import,
    ast.ImportFrom: hosting.execute_import_from, ast.ClassDef: hosting.execute_class,
    ast.Try: hosting.execute_try,
}  # fmt: skip
