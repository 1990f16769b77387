"""Values of Python expressions inside a kernel: one function per kind of AST node."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from tilelang.language import calls
from tilelang.language.frame import MISSING, Frame
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject
from tilelang.program.expr import Expr, Load, Select, Var, VarRef, children, walk
from tilelang.program.unknown import Unknown, contains_unknown, is_unknown
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Edit, Fix, Label, Span
from tilelang_diagnostics.suggest import did_you_mean, suggest

# Items of one iterator used while tracing; far above what a table of constants needs.
MAX_ITEMS = 1 << 20


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
                f"{type(node).__name__} expressions are not part of the language",
                help="compute the value outside the kernel and use it here",
            )
        return handler(frame, node)
    finally:
        trace.span = previous


def assign_name_of(frame: Frame, node: ast.expr, name: str | None) -> Any:
    """Evaluate the right side of `name = node`, so that storage is called `name`."""
    trace = frame.trace
    previous, trace.target_name = trace.target_name, name
    try:
        return evaluate(frame, node)
    finally:
        trace.target_name = previous


def _constant(frame: Frame, node: ast.Constant) -> Any:
    return node.value


def _name(frame: Frame, node: ast.Name) -> Any:
    value = frame.lookup(node.id, frame.trace.span)
    if value is not MISSING:
        return value
    expired = frame.expired.get(node.id)
    if expired is not None:
        reject(
            "TL134",
            f"`{node.id}` is used outside the branch or loop that defines it",
            label="its value does not exist here",
            labels=(Label(expired.span, f"`{node.id}` is bound here, inside device control flow"),),
            help=f"declare `{node.id} = T.alloc_var(dtype)` before it and assign inside",
        )
    bound = frame.bound_at(node.id)
    if bound is not None:
        _refuse_unbound(frame, node, bound)
    known = [*frame.names, *frame.env.known_names()]
    found = suggest(node.id, known)
    reject(
        "TL110",
        f"`{node.id}` is not defined{did_you_mean(node.id, known)}",
        label="bound nowhere",
        help=None if found else f"define `{node.id}` before it is used",
        fixes=_rename_fixes(frame, node, found),
    )


def _refuse_unbound(frame: Frame, node: ast.Name, bound: Span) -> NoReturn:
    """A name this function binds, but not before it is read."""
    here = frame.span(node)
    if (bound.line, bound.column) > (here.line, here.column):
        reject(
            "TL120",
            f"`{node.id}` is read before it is assigned",
            label="has no value yet",
            labels=(Label(bound, f"`{node.id}` is bound only here"),),
            help=f"move the assignment of `{node.id}` up",
        )
    reject(
        "TL110",
        f"`{node.id}` is not defined here",
        label="has no value",
        labels=(Label(bound, f"`{node.id}` is bound here, where tracing did not come by"),),
        help=f"give `{node.id}` a value before the branch or loop",
    )


def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    value = evaluate(frame, node.value)
    if is_unknown(value) or (is_symbol(value) and node.attr not in ("dtype", "name", "astype")):
        return Unknown(f"{value}.{node.attr}")
    try:
        return getattr(value, node.attr)
    except AttributeError:
        pass
    except Reject:
        raise
    except Exception as error:
        reject(
            "TL183",
            f"reading `.{node.attr}` raised {type(error).__name__}: {error}",
            help="this attribute is read while the kernel is traced",
        )
    owner = ast.unparse(node.value)
    known = [name for name in dir(value) if not name.startswith("_")]
    found = suggest(node.attr, known)
    span = frame.span(node)
    start = span.end_column - len(node.attr)
    name_span = type(span)(span.file, span.end_line, start, span.end_line, span.end_column)
    reject(
        "TL111",
        f"`{owner}` has no attribute `{node.attr}`{did_you_mean(node.attr, known)}",
        span=name_span,
        label="does not exist",
        help=" or ".join(f"`{owner}.{name}`" for name in found) or None,
        fixes=tuple(Fix(f"write `{c}`", (Edit(name_span, c),)) for c in found),
    )


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
    except Reject:
        raise
    except Exception as error:
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
        if isinstance(operand, Buffer):
            reject(
                "TL151",
                f"an operator is applied to the whole buffer `{operand.name}`",
                help="write the elementwise loop: `for i in T.Parallel(n): …[i]`",
            )
    try:
        return _BINARY[op](left, right)
    except Reject:
        raise
    except ZeroDivisionError:
        reject("TL117", "division by zero", help="divide by something else than 0")
    except Exception as error:
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
            return -value
        case ast.UAdd():
            return +value
        case _:
            return ~value


def _bool(frame: Frame, node: ast.BoolOp) -> Any:
    """Python short-circuits; from the first expression on, the rest is part of the kernel."""
    is_and = isinstance(node.op, ast.And)
    result: Any = is_and
    previous, frame.in_condition = frame.in_condition, True
    try:
        for operand in node.values:
            value = _no_buffer_condition(evaluate(frame, operand))
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
        reject(
            "TL183",
            f"{type(error).__name__}: {error}",
            help="Python computes this while the kernel is traced",
        )


def _is_about_objects(op: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether a value nobody has chosen yet is compared with something that is no number."""
    if not (is_symbol(left) or is_symbol(right)):
        return isinstance(op, (ast.In, ast.NotIn)) and contains_symbol(right)
    if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return True
    return any(not isinstance(side, (Expr, int, float)) for side in (left, right))


def contains_symbol(value: Any) -> bool:
    """Whether a value, or something in it, is a symbol."""
    if isinstance(value, dict):
        return any(contains_symbol(v) for v in (*value, *value.values()))
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(contains_symbol(v) for v in value)
    return is_symbol(value)


def _if_expression(frame: Frame, node: ast.IfExp) -> Any:
    condition = _no_buffer_condition(evaluate(frame, node.test))
    if is_unknown(condition):
        evaluate(frame, node.body)
        evaluate(frame, node.orelse)
        return Unknown("…if…else…")
    if not isinstance(condition, Expr):
        return evaluate(frame, node.body if condition else node.orelse)
    condition = operators.as_condition(condition)
    previous, frame.in_condition = frame.in_condition, True
    try:
        true, false = evaluate(frame, node.body), evaluate(frame, node.orelse)
    finally:
        frame.in_condition = previous
    if is_unknown(true) or is_unknown(false) or not (_is_scalar(true) and _is_scalar(false)):
        return Unknown("…if…else…")
    lhs, rhs = operators.as_operands(true, false, "if")
    return Select(condition, lhs, rhs, True, lhs.dtype, frame.trace.span)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (Expr, bool, int, float))


def _tuple(frame: Frame, node: ast.Tuple) -> tuple[Any, ...]:
    return tuple(_elements(frame, node.elts))


def _list(frame: Frame, node: ast.List) -> list[Any]:
    return list(_elements(frame, node.elts))


def _set(frame: Frame, node: ast.Set) -> set[Any]:
    return set(_elements(frame, node.elts))


def _elements(frame: Frame, nodes: list[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from evaluate(frame, node.value)
        else:
            yield evaluate(frame, node)


def _dict(frame: Frame, node: ast.Dict) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            merged = evaluate(frame, value)
            out.update(merged if isinstance(merged, dict) else {})
        else:
            out[evaluate(frame, key)] = evaluate(frame, value)
    return out


def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    values = _comprehend(frame, node.generators, lambda: evaluate(frame, node.elt))
    if isinstance(values, Unknown):
        return values
    return set(values) if isinstance(node, ast.SetComp) else values


def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Any:
    pairs = _comprehend(
        frame, node.generators, lambda: (evaluate(frame, node.key), evaluate(frame, node.value))
    )
    return pairs if isinstance(pairs, Unknown) else dict(pairs)


def _comprehend(
    frame: Frame, generators: list[ast.comprehension], element: Callable[[], Any]
) -> list[Any] | Unknown:
    """The elements, or an unknown when the text does not tell which there are."""
    from tilelang.language import assign

    saved = dict(frame.names)
    out: list[Any] = []
    undecided = False

    def run(level: int) -> None:
        nonlocal undecided
        if level == len(generators):
            out.append(element())
            return
        generator = generators[level]
        items = evaluate(frame, generator.iter)
        undecided |= is_unknown(items) or is_symbol(items)
        for item in iterate(items):
            assign.bind_target(frame, generator.target, item)
            tests = [evaluate(frame, test) for test in generator.ifs]
            undecided |= any(is_unknown(t) or is_symbol(t) for t in tests)
            if not undecided and all(bool(t) for t in tests):
                run(level + 1)

    try:
        run(0)
    finally:
        frame.names = saved
    return Unknown("[… for …]") if undecided else out


def iterate(value: Any) -> Iterator[Any]:
    """Iterate a Python container at trace time."""
    if is_unknown(value) or is_symbol(value):
        return iter(())
    if isinstance(value, (Expr, Buffer, Region)):
        reject(
            "TL141",
            f"`{value}` cannot be iterated at trace time",
            help="loop over its indices: `for i in T.serial(n):`",
        )
    try:
        return _items(iter(value))
    except TypeError:
        reject(
            "TL141",
            f"{type(value).__name__} cannot be iterated",
            help="iterate a range, a list or a tuple",
        )
    except Exception as error:
        _iterating_raised(error)


def _items(items: Iterator[Any]) -> Iterator[Any]:
    """The items, as many as a kernel can use: an iterator may have no end."""
    for _ in range(MAX_ITEMS):
        try:
            item = next(items)
        except StopIteration:
            return
        except (Reject, CompileError):
            raise
        except Exception as error:
            _iterating_raised(error)
        yield item
    reject(
        "TL148",
        f"more than {MAX_ITEMS} items are iterated while tracing",
        help="iterate something that ends, or `T.serial(n)` to keep the loop rolled",
    )


def _iterating_raised(error: Exception) -> NoReturn:
    reject(
        "TL183",
        f"iterating raised {type(error).__name__}: {error}",
        label="iterated while the kernel is traced",
        help="iterate a list made before; this runs in Python, before there is a kernel",
    )


def _call(frame: Frame, node: ast.Call) -> Any:
    return calls.call(frame, node)


def is_symbol(value: Any) -> bool:
    """A parameter of a factory the text gives no value for: it may be any Python object."""
    if not isinstance(value, Expr):
        return False
    leaves = [n for n in walk(value) if isinstance(n, (Var, Load)) and not children(n)]
    return bool(leaves) and all(isinstance(n, Var) and n.kind == "symbol" for n in leaves)


def _lambda(frame: Frame, node: ast.Lambda) -> Any:
    return calls.InterpretedLambda.define(frame, node)


def _f_string(frame: Frame, node: ast.JoinedStr) -> str | Unknown:
    parts = [evaluate(frame, part) for part in node.values]
    if any(is_unknown(part) for part in parts):
        return Unknown("f-string")
    return "".join(map(str, parts))


def _formatted(frame: Frame, node: ast.FormattedValue) -> str | Unknown:
    value = evaluate(frame, node.value)
    if is_unknown(value) or is_symbol(value):
        return Unknown("f-string")
    spec = "" if node.format_spec is None else str(evaluate(frame, node.format_spec))
    if node.conversion == ord("r"):
        value = repr(value)
    try:
        return format(value, spec) if not isinstance(value, (Expr, Buffer)) else str(value)
    except Exception as error:
        reject(
            "TL183",
            f"{type(error).__name__}: {error}",
            help="Python computes this while the kernel is traced",
        )


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
        name = value.name if isinstance(value, Buffer) else value.buffer.name
        reject(
            "TL150",
            f"buffer `{name}` is used as a condition",
            label="a whole buffer is neither true nor false",
            help=f"test an element (`{name}[i] != 0`), or `T.any_of({name})`",
        )
    return value


def _rename_fixes(frame: Frame, node: ast.expr, names: tuple[str, ...]) -> tuple[Fix, ...]:
    return tuple(Fix(f"write `{n}`", (Edit(frame.span(node), n),)) for n in names)


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
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_EXPRESSIONS: dict[type[ast.expr], Callable[[Frame, Any], Any]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute,
    ast.Subscript: _subscript, ast.Slice: _slice, ast.BinOp: _binary, ast.UnaryOp: _unary,
    ast.BoolOp: _bool, ast.Compare: _compare, ast.IfExp: _if_expression, ast.Tuple: _tuple,
    ast.List: _list, ast.Set: _set, ast.Dict: _dict, ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension, ast.Lambda: _lambda, ast.JoinedStr: _f_string,
    ast.FormattedValue: _formatted, ast.NamedExpr: _named, ast.Starred: _starred,
    ast.Call: _call,
}  # fmt: skip
