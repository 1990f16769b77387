"""Values of Python expressions inside a kernel: one function per kind of AST node."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from tilelang.language import (
    advice,
    calls,
    containers,
    divisions,
    host_calls,
    inlining,
    limits,
    lookups,
)
from tilelang.language.frame import Frame
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject
from tilelang.program.expr import Expr, Load, Select, Var, VarRef, children, walk
from tilelang.program.indexing import is_one_element, refuse_truth, region_value
from tilelang.program.unknown import Unknown, contains_unknown, is_unknown


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of `node`: a Python value, an expression, a buffer … or an unknown."""
    handler = _EXPRESSIONS.get(type(node))
    trace = frame.trace
    previous = trace.span
    trace.span = frame.span(node)
    try:
        if handler is None:
            reject(
                "TL131",
                f"`{_keyword(node)}` is not part of the language",
                help="compute the value outside the kernel and use it here",
            )
        return handler(frame, node)
    except limits.LargeValue as large:
        trace.report(large.diagnostic)
        return Unknown("too large")
    finally:
        trace.span = previous


def evaluate_or_unknown(frame: Frame, node: ast.expr) -> Any:
    """The value of a condition or iterable; after an error unknown, so the body is still read."""
    try:
        return evaluate(frame, node)
    except Reject as rejected:
        frame.trace.report(divisions.explained(frame, rejected.diagnostic))
        return Unknown("condition")


def _keyword(node: ast.expr) -> str:
    """`yield from` for `YieldFrom`."""
    name = type(node).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def assign_name_of(frame: Frame, node: ast.expr, name: str | None) -> Any:
    """Evaluate the right side of `name = node`, so that storage is called `name`."""
    trace = frame.trace
    previous, trace.target_name = trace.target_name, name
    try:
        return evaluate(frame, node)
    finally:
        trace.target_name = previous


def _constant(frame: Frame, node: ast.Constant) -> Any:
    return limits.checked(node.value) if isinstance(node.value, int) else node.value


def _name(frame: Frame, node: ast.Name) -> Any:
    return lookups.name(frame, node)


def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    return lookups.attribute(frame, node)


def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    return index_value(evaluate(frame, node.value), evaluate(frame, node.slice))


def index_value(value: Any, index: Any) -> Any:
    """`value[index]`, Python's errors turned into diagnostics."""
    if is_unknown(value) or is_symbol(value):
        return Unknown(f"{value}[…]")
    if isinstance(value, (Buffer, Region, VarRef)):
        return value[index]
    if isinstance(value, Expr):
        reject(
            "TL228",
            f"`{value}` is a scalar and cannot be indexed",
            help="index the buffer it comes from",
        )
    if contains_unknown(index) and not hasattr(value, "scope"):
        return Unknown("…[…]")
    try:
        return value[index]
    except (Reject, RecursionError):
        raise
    except Exception as error:
        advice.refuse_index(value, index)
        reject(
            "TL228",
            f"indexing raised {type(error).__name__}: {error}",
            help="Python containers are indexed while the kernel is traced, by Python values",
        )


def _slice(frame: Frame, node: ast.Slice) -> slice:
    lower, upper, step = (None if n is None else evaluate(frame, n)
                          for n in (node.lower, node.upper, node.step))  # fmt: skip
    return slice(lower, upper, step)


def _binary(frame: Frame, node: ast.BinOp) -> Any:
    left = evaluate(frame, node.left)
    right = evaluate(frame, node.right)
    return apply_binary(type(node.op), left, right)


def apply_binary(op: type[ast.operator], left: Any, right: Any) -> Any:
    """`left op right`, Python's errors turned into diagnostics."""
    for operand in (left, right):
        _refuse_whole(operand)
    left, right = (region_value(x) if isinstance(x, Region) else x for x in (left, right))
    apply = _BINARY[op]
    if limits.operands_too_large(apply, left, right):
        limits.refuse_large()
    try:
        return limits.checked(apply(left, right))
    except Reject:
        raise
    except ZeroDivisionError:
        reject("TL117", "division by zero", help="divide by something else than 0")
    except Exception as error:
        _python_raised(error)


def _refuse_whole(operand: Any) -> None:
    """TL151 for a buffer or region that an operator is applied to."""
    if isinstance(operand, (Buffer, Region)) and not is_one_element(operand):
        what = (
            f"the whole buffer `{operand.name}`"
            if isinstance(operand, Buffer)
            else f"a region of `{operand.buffer.name}`"
        )
        reject(
            "TL151",
            f"an operator is applied to {what}",
            help="write the elementwise loop: `for i in T.Parallel(n): …[i]`",
        )


def _python_raised(error: Exception) -> NoReturn:
    if isinstance(error, RecursionError):
        raise error  # of this interpreter, in what nests around
    reject(
        "TL183",
        f"{type(error).__name__}: {error}",
        help="Python computes this while the kernel is traced",
    )


def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    value = evaluate(frame, node.operand)
    match node.op:
        case ast.Not():
            return operators.logical_not(_no_buffer_condition(value))
        case ast.USub():
            return _apply_unary(operator.neg, value)
        case ast.UAdd():
            return _apply_unary(operator.pos, value)
        case _:
            return _apply_unary(operator.invert, value)


def _apply_unary(op: Callable[[Any], Any], value: Any) -> Any:
    _refuse_whole(value)
    try:
        return op(region_value(value) if isinstance(value, Region) else value)
    except Reject:
        raise
    except Exception as error:
        _python_raised(error)


def _bool(frame: Frame, node: ast.BoolOp) -> Any:
    """Python short-circuits; from the first expression on, the rest is part of the kernel."""
    is_and = isinstance(node.op, ast.And)
    result: Any = is_and
    previous, frame.in_condition = frame.in_condition, True
    try:
        for operand in node.values:
            with host_calls.perhaps(frame, result):
                value = _no_buffer_condition(evaluate(frame, operand))
            if operand is not node.values[-1]:
                host_calls.refuse_truth_in_helper(frame, value)
            if isinstance(result, Expr):
                result = operators.binary("and" if is_and else "or", result, value)
                continue
            if not isinstance(value, (Expr, Unknown)) and bool(value) != is_and:
                return value
            if not isinstance(result, Unknown):  # what is unknown stays so until it is decided
                result = value
        return result
    finally:
        frame.in_condition = previous


def _compare(frame: Frame, node: ast.Compare) -> Any:
    left = evaluate(frame, node.left)
    result: Any = None
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(frame, comparator)
        one = _compare_once(op, left, right)
        result = (
            one
            if result is None
            else operators.binary("and", result, one)
            if isinstance(result, Expr) or isinstance(one, Expr)
            else (result and one)
        )
        left = right
    return result


def _compare_once(op: ast.cmpop, left: Any, right: Any) -> Any:
    if is_unknown(left) or is_unknown(right):
        if isinstance(op, (ast.Is, ast.IsNot)) and None in (
            left if left is None else 0,
            right if right is None else 0,
        ):
            return Unknown("is None")
        return Unknown("comparison")
    if _is_about_objects(op, left, right):
        return Unknown("comparison")
    for operand in (left, right):
        if isinstance(operand, Buffer) and not isinstance(
            op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)
        ):
            reject("TL151", f"the whole buffer `{operand.name}` is compared",
                   help="compare elements inside `T.Parallel`")  # fmt: skip
    try:
        return _COMPARE[type(op)](left, right)
    except Reject:
        raise
    except Exception as error:
        _python_raised(error)


def _is_about_objects(op: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether a value nobody has chosen yet is compared with something that is no number."""
    if not (is_symbol(left) or is_symbol(right)):
        return isinstance(op, (ast.In, ast.NotIn)) and containers.contains_symbol(right)
    if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return True
    return any(not isinstance(side, (Expr, int, float)) for side in (left, right))


def _if_expression(frame: Frame, node: ast.IfExp) -> Any:
    condition = _no_buffer_condition(evaluate(frame, node.test))
    host_calls.refuse_truth_in_helper(frame, condition)
    if is_unknown(condition):
        with host_calls.perhaps(frame, condition):
            evaluate(frame, node.body)
            evaluate(frame, node.orelse)
        return Unknown("…if…else…")
    if not isinstance(condition, Expr):
        return evaluate(frame, node.body if condition else node.orelse)
    condition = operators.as_condition(condition)
    previous, frame.in_condition = frame.in_condition, True
    try:
        with host_calls.perhaps(frame, condition):
            true, false = evaluate(frame, node.body), evaluate(frame, node.orelse)
    finally:
        frame.in_condition = previous
    if is_unknown(true) or is_unknown(false) or not (_is_number(true) and _is_number(false)):
        return Unknown("…if…else…")
    lhs, rhs = operators.as_operands(true, false, "if")
    return Select(condition, lhs, rhs, True, lhs.dtype, frame.trace.span)


def _is_number(value: Any) -> bool:
    return isinstance(value, (Expr, bool, int, float))


def _container(frame: Frame, node: ast.expr) -> Any:
    return containers.evaluate(frame, node)


def _call(frame: Frame, node: ast.Call) -> Any:
    return calls.call(frame, node)


def is_symbol(value: Any) -> bool:
    """A parameter of a factory the text gives no value for: it may be any Python object."""
    if not isinstance(value, Expr):
        return False
    leaves = [n for n in walk(value) if isinstance(n, (Var, Load)) and not children(n)]
    return bool(leaves) and all(isinstance(n, Var) and n.kind == "symbol" for n in leaves)


def _lambda(frame: Frame, node: ast.Lambda) -> Any:
    return inlining.InterpretedLambda.define(frame, node)


def _f_string(frame: Frame, node: ast.JoinedStr) -> str | Unknown:
    parts = [evaluate(frame, part) for part in node.values]
    if any(is_unknown(part) for part in parts):
        return Unknown("f-string")
    return limits.checked("".join(map(str, parts)))


def _formatted(frame: Frame, node: ast.FormattedValue) -> str | Unknown:
    value = evaluate(frame, node.value)
    if is_unknown(value) or is_symbol(value):
        return Unknown("f-string")
    spec = "" if node.format_spec is None else str(evaluate(frame, node.format_spec))
    if node.conversion == ord("r"):
        value = repr(value)
    limits.refuse_wide(spec)
    try:
        return format(value, spec) if not isinstance(value, (Expr, Buffer)) else str(value)
    except Exception as error:
        _python_raised(error)


def _named(frame: Frame, node: ast.NamedExpr) -> Any:
    value = assign_name_of(frame, node.value, node.target.id)
    frame.bind(node.target.id, value, frame.span(node.target))
    return value


def _starred(frame: Frame, node: ast.Starred) -> Any:
    reject(
        "TL131",
        "a starred expression is not possible here",
        help="write its elements out, or use it in a call or a list",
    )


def _no_buffer_condition(value: Any) -> Any:
    if isinstance(value, (Buffer, Region)):
        refuse_truth(value)
    return value


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: limits.contains(b, a),
    ast.NotIn: lambda a, b: not limits.contains(b, a),
}  # fmt: skip
_EXPRESSIONS: dict[type[ast.expr], Callable[[Frame, Any], Any]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute,
    ast.Subscript: _subscript, ast.Slice: _slice, ast.BinOp: _binary, ast.UnaryOp: _unary,
    ast.BoolOp: _bool, ast.Compare: _compare, ast.IfExp: _if_expression, ast.Tuple: _container,
    ast.List: _container, ast.Set: _container, ast.Dict: _container, ast.ListComp: _container,
    ast.GeneratorExp: _container, ast.SetComp: _container, ast.DictComp: _container,
    ast.Lambda: _lambda, ast.JoinedStr: _f_string,
    ast.FormattedValue: _formatted, ast.NamedExpr: _named, ast.Starred: _starred,
    ast.Call: _call,
}  # fmt: skip
