"""Binding and storing: what `=`, `+=`, tuple targets and parameters do."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NoReturn

from tilelang.language import advice, carried, expressions, limits
from tilelang.language.catalog import LanguageFunction
from tilelang.language.frame import Frame, Local
from tilelang.language.frames import LoopFrame
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, active_trace, reject, warn
from tilelang.program.expr import Const, Expr, Intrinsic, Load, Var, VarRef, walk
from tilelang.program.indexing import is_one_element
from tilelang.program.stmt import Let, Store
from tilelang.program.unknown import Unknown, contains_unknown, is_unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Label, Severity, Span


def assign(frame: Frame, node: ast.Assign) -> None:
    """`targets = value`, possibly chained; all reads happen before any store."""
    name = (
        node.targets[0].id
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        else None
    )
    value = _right_side(frame, node.value, node.targets[0], name)
    if value is None and name != "_" and not frame.host:
        _refuse_nothing(frame, node)
    fresh = isinstance(node.value, (ast.Call, ast.Tuple, ast.List))
    if len(node.targets) > 1 and isinstance(value, Expr) and not isinstance(value, (Const, VarRef)):
        value = let(frame, name or "value", value)
    for target in node.targets:
        carried.refuse(frame, target, value, node.value)
        if isinstance(target, ast.Subscript):
            _store_element(frame, target, value, node.value)
        else:
            assign_target(frame, target, value, fresh=fresh)


def _refuse_nothing(frame: Frame, node: ast.Assign) -> None:
    """TL116 for the result of a function of the language that has none."""
    if not isinstance(node.value, ast.Call):
        return
    function = expressions.evaluate(frame, node.value.func)
    if not isinstance(function, LanguageFunction):
        return
    returns = "return_prev" in function.signature.parameters
    reject(
        "TL116",
        f"`T.{function.name}` returns nothing that could have a name",
        span=frame.span(node.targets[0]),
        labels=(Label(frame.span(node.value), "has an effect, and no value"),),
        help="pass `return_prev=True` for the value before"
        if returns
        else "call it on a line of its own: it writes into one of its operands",
    )


def assign_target(frame: Frame, target: ast.expr, value: Any, *, fresh: bool = False) -> None:
    """Give one target its value: bind a name, store an element, or unpack."""
    match target:
        case ast.Name():
            _assign_name(frame, target, value, fresh)
        case ast.Tuple() | ast.List():
            _unpack(frame, target, value, fresh)
        case ast.Subscript():
            _store_element(frame, target, value)
        case ast.Attribute():
            reject(
                "TL133",
                f"`{ast.unparse(target)}` is assigned inside a kernel",
                help="kernels have no objects at run time; use a buffer or `T.alloc_var`",
            )
        case ast.Starred():
            assign_target(frame, target.value, value, fresh=fresh)
        case _:
            reject(
                "TL130",
                f"`{ast.unparse(target)}` cannot be assigned",
                span=frame.span(target),
                help="assign to a name, an element `A[i]`, or a tuple of them",
            )


def bind_target(frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind loop or comprehension targets to Python values, without storing anywhere."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value, frame.span(target))
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, Expr):
            reject(
                "TL154",
                f"`{ast.unparse(target)}` stands for one loop variable, which cannot be unpacked",
                span=frame.span(target),
                help="write one name here",
            )
        values = [Unknown()] * len(target.elts) if is_unknown(value) else [*limits.bounded(value)]
        if len(values) != len(target.elts):
            _refuse_unpack(frame, target, len(values))
        for element, item in zip(target.elts, values, strict=True):
            bind_target(frame, element, item)
        return
    reject(
        "TL130",
        f"`{ast.unparse(target)}` cannot be a loop target",
        span=frame.span(target),
        help="iterate over a name or a tuple of names",
    )


def _refuse_unpack(frame: Frame, target: ast.Tuple | ast.List, count: int) -> NoReturn:
    reject(
        "TL154",
        f"{counted(len(target.elts), 'target')} for {counted(count, 'value')}",
        span=frame.span(target),
        help=f"write {counted(count, 'name')} here",
    )


def bind_parameter(frame: Frame, parameter: ast.arg, value: Any, *, by_reference: bool) -> None:
    """A parameter of a macro or helper: scalars are bound once, references stay references."""
    span = frame.span(parameter)
    if by_reference:
        frame.bind(parameter.arg, _reference(parameter, value), span)
    elif isinstance(value, Expr) and not isinstance(value, (Const, Var)) and frame.is_macro:
        if isinstance(value, Load) and not isinstance(value, VarRef):
            # An element may be the origin of a tile for the macro, so it stays an lvalue.
            frame.bind(parameter.arg, value, span)
            return
        frame.bind(parameter.arg, let(frame, parameter.arg, value), span, is_let=True)
    else:
        frame.bind(parameter.arg, value, span)


def augmented(frame: Frame, node: ast.AugAssign) -> None:
    """`target op= value`."""
    op = type(node.op)
    if isinstance(node.target, ast.Name):
        current = expressions.evaluate(frame, _as_load(node.target))
        value = expressions.evaluate(frame, node.value)
        if isinstance(current, (Buffer, Region)) and not is_one_element(current):
            name = current.name if isinstance(current, Buffer) else current.buffer.name
            reject(
                "TL151",
                f"`{name} {_symbol(op)}= …` updates a whole buffer",
                help=f"write the loop: `for i in T.Parallel(n): {name}[i] {_symbol(op)}= …`",
            )
        result = _applied(op, current, value)
        carried.refuse(frame, node.target, result, node.target)
        _assign_name(frame, node.target, result, fresh=False)
    elif isinstance(node.target, ast.Subscript):
        buffer = expressions.evaluate(frame, node.target.value)
        index = expressions.evaluate(frame, node.target.slice)
        value = expressions.evaluate(frame, node.value)
        if is_unknown(buffer) or contains_unknown(index) or is_unknown(value):
            frame.trace.complete = False
            return
        current = expressions.index_value(buffer, index)
        store_element(buffer, index, expressions.apply_binary(op, current, value))
    else:
        assign_target(frame, node.target, Unknown())


def let(frame: Frame, name: str, value: Expr) -> Var:
    """Name the value of an expression in the program and give the variable."""
    trace = frame.trace
    pure = not any(isinstance(node, (Load, Intrinsic)) for node in walk(value))
    var = Var(trace.unique(name), value.dtype, trace.span, "let", value if pure else None)
    trace.emit(Let(var, value, **trace.position()))
    return var


def forget(frame: Frame, target: ast.expr) -> None:
    """After an error: the names of `target` exist, their values are unknown."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            forget_name(frame, node.id, frame.span(node))


def forget_name(frame: Frame, name: str, span: Span) -> None:
    """As `forget`, for one name."""
    if name not in frame.names:
        frame.bind(name, Unknown(name), span)


def _right_side(frame: Frame, node: ast.expr, target: ast.expr, name: str | None) -> Any:
    """Evaluate; element by element for tuples, so that storage gets its own names."""
    if (
        isinstance(node, (ast.Tuple, ast.List))
        and isinstance(target, (ast.Tuple, ast.List))
        and len(node.elts) == len(target.elts)
        and not any(isinstance(e, ast.Starred) for e in (*node.elts, *target.elts))
    ):
        values = []
        for element, inner in zip(node.elts, target.elts, strict=True):
            inner_name = inner.id if isinstance(inner, ast.Name) else None
            value = expressions.assign_name_of(frame, element, inner_name)
            # `a, b = b, a` reads both before it stores either.
            if isinstance(value, Load) and not isinstance(element, ast.Call):
                value = let(frame, inner_name or "value", value)
            values.append(value)
        return tuple(values)
    if isinstance(target, (ast.Tuple, ast.List)) and target.elts and name is None:
        first = target.elts[0]
        name = first.id if isinstance(first, ast.Name) else None
    return expressions.assign_name_of(frame, node, name)


def _assign_name(frame: Frame, target: ast.Name, value: Any, fresh: bool) -> None:
    span = frame.span(target)
    local = frame.names.get(target.id)
    current = local.value if local is not None else None
    if isinstance(current, VarRef) and not (fresh and isinstance(value, VarRef)):
        if _is_storable(value):
            if local is not None and local.symbol is not None:
                local.symbol.used(span)
            stored = operators.as_expr(value, current.dtype)
            trace = frame.trace
            trace.emit(Store(current.buffer, current.indices, stored, **trace.position()))
            return
        if is_unknown(value):
            frame.trace.complete = False
            return
    if isinstance(current, Var) and current.kind == "loop" and local is not None:
        warn(
            "TL145",
            f"loop variable `{target.id}` is assigned",
            span=span,
            labels=(Label(local.span, "bound by this loop"),),
            help="the loop itself is not changed; use another name",
        )
    value = _settle(frame, target.id, value, fresh)
    is_let = isinstance(value, Var) and value.kind == "let"
    if local is not None and local.is_let and is_let and not frame.host:
        _warn_rebound(target.id, span, local, in_same_region=local.region == frame.region)
    frame.bind(target.id, value, span, is_let=is_let)


def _settle(frame: Frame, name: str, value: Any, fresh: bool) -> Any:
    """Expressions become named values of the program; everything else stays as it is."""
    if frame.host or not isinstance(value, Expr) or isinstance(value, Const):
        return value
    if (isinstance(value, VarRef) and fresh) or expressions.is_symbol(value):
        return value
    if isinstance(value, Var) and value.kind != "loop":
        return value
    return let(frame, name, value)


def _warn_rebound(name: str, span: Span, local: Local, *, in_same_region: bool) -> None:
    """A new value of the name: harmless in a straight line, lost at the end of a loop or branch."""
    warn(
        "TL135",
        f"immutable value `{name}` is bound again",
        severity=Severity.REMARK if in_same_region else Severity.WARNING,
        span=span,
        label="a new value of the same name"
        if in_same_region
        else "this value ends with the loop or branch",
        labels=(Label(local.span, "first bound here"),),
        help=f"declare `{name} = T.alloc_var(dtype)` if it is meant to change at run time",
    )


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any, fresh: bool) -> None:
    if is_unknown(value):
        forget(frame, target)
        return
    if isinstance(value, LoopFrame):
        value.refuse_as_value(ast.unparse(target).strip("()"))
    if isinstance(value, (Expr, Buffer, Region)):
        reject(
            "TL154",
            f"`{value}` cannot be unpacked into {counted(len(target.elts), 'target')}",
            span=frame.span(target),
            help=f'name every one: `T.const("{", ".join(map(ast.unparse, target.elts))}")`'
            if isinstance(value, Var) and value.kind in ("const", "dim")
            else "index it once per target",
        )
    try:
        values = [*limits.bounded(value)]
    except TypeError:
        reject(
            "TL154",
            f"{type(value).__name__} cannot be unpacked",
            span=frame.span(target),
            help="unpack a tuple or a list",
        )
    starred = [n for n, e in enumerate(target.elts) if isinstance(e, ast.Starred)]
    if starred:
        at = starred[0]
        tail = len(target.elts) - at - 1
        values = [*values[:at], values[at : len(values) - tail], *values[len(values) - tail :]]
    if len(values) != len(target.elts):
        _refuse_unpack(frame, target, len(values))
    for element, item in zip(target.elts, values, strict=True):
        assign_target(frame, element, item, fresh=fresh or isinstance(item, VarRef))


def _store_element(
    frame: Frame, target: ast.Subscript, value: Any, node: ast.expr | None = None
) -> None:
    """`target = value`, where `node` is the text of the value."""
    container = expressions.evaluate(frame, target.value)
    index = expressions.evaluate(frame, target.slice)
    if is_unknown(container) or contains_unknown(index) or is_unknown(value):
        frame.trace.complete = False
        return
    if node is not None and isinstance(container, Buffer) and isinstance(value, str | complex):
        with frame.trace.at(frame.span(node)):
            operators.as_expr(value)  # what is no number is shown where it stands
    with frame.trace.at(frame.span(target)):
        store_element(container, index, value)


def _applied(op: type[ast.operator], current: Any, value: Any) -> Any:
    try:
        return expressions.apply_binary(op, current, value)
    except limits.LargeValue as large:
        trace = active_trace()
        if trace is None:
            raise
        trace.report(large.diagnostic)
        return Unknown("too large")


def store_element(container: Any, index: Any, value: Any) -> None:
    """`container[index] = value` for buffers, regions and Python containers."""
    if isinstance(container, (Buffer, VarRef)):
        container[index] = value
        return
    if isinstance(container, Region):
        inner = container[index]
        target_region = inner if isinstance(inner, Region) else None
        if isinstance(inner, Load):
            inner.buffer[tuple(inner.indices)] = value
        elif target_region is not None:
            slices = tuple(slice(r.min, r.min + r.extent) for r in target_region.ranges)
            target_region.buffer[slices] = value
        return
    if isinstance(container, Expr):
        reject(
            "TL228",
            f"`{container}` is a scalar and has no elements to assign",
            help="assign to the name, or allocate a buffer with `T.alloc_local`",
        )
    grows = isinstance(container, list | dict) and isinstance(value, Iterable)
    try:
        in_slice = isinstance(container, list) and isinstance(index, slice) and grows
        container[index] = limits.bounded(value) if in_slice else value
        if grows:
            limits.checked(container)
    except Reject:
        raise
    except Exception as error:
        advice.refuse_index(container, index)
        reject(
            "TL183",
            f"assigning an element raised {type(error).__name__}: {error}",
            help="this is a Python container, filled while the kernel is traced",
        )


def _reference(parameter: ast.arg, value: Any) -> Any:
    if isinstance(value, Load):
        return VarRef(value.buffer, value.indices, value.dtype, value.span)
    if isinstance(value, (Buffer, Region)) or is_unknown(value):
        return value
    reject(
        "TL182",
        f"`{parameter.arg}` is taken by reference, but the argument is a value",
        help="pass an `alloc_var`, an element `A[i]`, or a region",
    )


def _is_storable(value: Any) -> bool:
    return isinstance(value, (Expr, bool, int, float)) or is_one_element(value)


def _as_load(target: ast.Name) -> ast.Name:
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)


def _symbol(op: type[ast.operator]) -> str:
    return {
        ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
        ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|",
        ast.BitXor: "^", ast.MatMult: "@",
    }[op]  # fmt: skip
