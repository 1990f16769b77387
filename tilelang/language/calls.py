"""Calls inside a kernel: language functions, macros, helpers, lambdas and plain Python."""

from __future__ import annotations

import ast
import builtins
import traceback
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from tilelang.dtypes import DType
from tilelang.language import (
    advice,
    containers,
    expressions,
    host_calls,
    inlining,
    limits,
    loops,
)
from tilelang.language.catalog import LanguageFunction
from tilelang.language.frame import SAFE_BUILTINS, Frame
from tilelang.language.types import PointerType, TensorFactory
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import CallSite, Reject, reject, warn
from tilelang.program.expr import FLOAT32, INT32, Expr, Var
from tilelang.program.unknown import Unknown, contains_unknown, is_unknown
from tilelang_diagnostics import CompileError, with_article
from tilelang_diagnostics.model import Label, Severity, Span

_PACKAGE = Path(__file__).parents[1]


def call(frame: Frame, node: ast.Call) -> Any:
    """The value of a call, after inlining, tracing or running what it names."""
    target_name, frame.trace.target_name = frame.trace.target_name, None
    function = expressions.evaluate(frame, node.func)
    args, kwargs = _arguments(frame, node)
    frame.trace.target_name = target_name
    if _is_print(node, function) and not frame.host:
        _warn_of_print(node, args)
    if isinstance(function, (LanguageFunction, TensorFactory)):
        return _call_language(frame, node, function, args, kwargs)
    if isinstance(function, inlining.Macro):
        return inlining.call_macro(frame, function, args, kwargs)
    if isinstance(function, inlining.StaticFunction):
        return inlining.call_helper(frame, function, args, kwargs)
    if isinstance(function, inlining.InterpretedLambda):
        return function.evaluate(*args, **kwargs)
    if isinstance(function, Unknown) or expressions.is_symbol(function):
        if frame.trace.facts.get("signature_only") and _mentions_symbols(args, kwargs):
            return Unknown(f"{ast.unparse(node.func)}(…)")  # sizes are known the second time
        if not frame.host:
            advice.refuse_foreign(function, ast.unparse(node.func), (args, kwargs))
        plain = host_calls.of_builtin(function, args)
        if plain is not None:
            return _call_python(frame, node, plain, args, kwargs)
        return Unknown(f"{function}(…)")
    if isinstance(function, (DType, PointerType)):
        return Unknown("…") if contains_unknown(args) else function(*args, **kwargs)
    if isinstance(function, (Expr, Buffer, Region)) or not callable(function):
        reject(
            "TL121",
            f"`{ast.unparse(node.func)}` is not a function",
            span=frame.span(node.func),
            label=_what_it_is(function),
            help="index a buffer with square brackets"
            if isinstance(function, (Buffer, Region))
            else "call a function, or drop the parentheses",
        )
    return _call_python(frame, node, function, args, kwargs)


def _name_span(frame: Frame, keyword: ast.keyword) -> Span:
    whole = frame.span(keyword)
    end = whole.column + len(keyword.arg or "")
    return Span(whole.file, whole.line, whole.column, whole.line, end)


def _what_it_is(value: Any) -> str:
    if isinstance(value, (Buffer, Region)):
        return "is a buffer"
    if isinstance(value, Expr):
        return "is a value of the kernel"
    return f"is {with_article(type(value).__name__)}"


def _call_language(
    frame: Frame,
    node: ast.Call,
    function: LanguageFunction | TensorFactory,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a function of the language, which may ask where each argument stands."""
    trace = frame.trace
    previous = trace.call_site
    # What follows a starred argument stands at no known position.
    plain = takewhile(lambda a: not isinstance(a, ast.Starred), node.args)
    trace.call_site = CallSite(
        tuple(frame.span(a) for a in plain),
        tuple((k.arg, frame.span(k.value)) for k in node.keywords if k.arg is not None),
        frame.span(node.func),
        function.positional,
        tuple((k.arg, _name_span(frame, k)) for k in node.keywords if k.arg is not None),
    )
    try:
        if isinstance(function, LanguageFunction):
            return function.invoke(trace, args, kwargs)
        return Unknown("…") if contains_unknown(args) else function(*args, **kwargs)
    finally:
        trace.call_site = previous


def _arguments(frame: Frame, node: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args.extend(containers.iterate(expressions.evaluate(frame, arg.value)))
        else:
            args.append(expressions.evaluate(frame, arg))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = expressions.evaluate(frame, keyword.value)
        if keyword.arg is None:
            if not (isinstance(value, dict) and all(isinstance(k, str) for k in value)):
                if not is_unknown(value) and not expressions.is_symbol(value):
                    reject(
                        "TL116",
                        f"`**{ast.unparse(keyword.value)}` is no dict of keywords",
                        span=frame.span(keyword.value),
                        help="spread a dict whose keys are the names of parameters",
                    )
                continue
            kwargs.update(value)
        else:
            kwargs[keyword.arg] = value
    return tuple(args), kwargs


def _call_python(
    frame: Frame, node: ast.Call, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a Python callable now; builtins that meet expressions become part of the kernel."""
    if host_calls.is_refused(frame, (args, kwargs)):
        return _run(frame, node, function, args, kwargs)
    if _is_conversion(function, args, kwargs):
        return _ON_EXPRESSIONS[function](*args)
    if function is builtins.range and len(args) == 3 and args[2] == 0 and not frame.host:
        reject("TL142", "a loop with step 0 never ends", help="use a non-zero step")
    if function is builtins.range and any(isinstance(a, (Expr, Region)) for a in args):
        return loops.range_loop(*args)
    if contains_unknown(args) or contains_unknown(kwargs):
        return Unknown(f"{ast.unparse(node.func)}(…)")
    if frame.static and _refuses_symbols(function, args):
        return Unknown(f"{ast.unparse(node.func)}(…)")
    return _run(frame, node, function, args, kwargs)


def _is_conversion(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a builtin meets expressions it becomes one with."""
    if function not in _ON_EXPRESSIONS or not any(isinstance(a, (Expr, Unknown)) for a in args):
        return False
    return function in (builtins.min, builtins.max) or (len(args) == 1 and not kwargs)


def _run(
    frame: Frame, node: ast.Call, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    try:
        return limits.call(function, args, kwargs)
    except (Reject, CompileError) as refused:
        if isinstance(refused, Reject) and refused.diagnostic.code == "TL152":
            advice.refuse_foreign(function, ast.unparse(node.func), (args, kwargs))
        raise
    except RecursionError:
        reject(
            "TL180",
            f"`{ast.unparse(node.func)}` calls itself without end",
            help="end the recursion on a Python value",
        )
    except Exception as error:
        if function in (Layout, Fragment) and not _mentions_symbols(args, kwargs):
            _refuse_layout(frame, node, error)
        if frame.trace.facts.get("signature_only") and _mentions_symbols(args, kwargs):
            return Unknown(f"{ast.unparse(node.func)}(…)")  # sizes are known the second time
        if not frame.host:
            advice.refuse_foreign(function, ast.unparse(node.func), (args, kwargs))
        if frame.static and not host_calls.raises_in_any_run(frame, function, args, kwargs):
            return Unknown(f"{ast.unparse(node.func)}(…)")
        if frame.is_helper:
            place = frame.trace.span
            raise inlining.HelperRaised(frame.function, host_calls.text(error), place) from error
        reject(
            "TL183",
            f"`{ast.unparse(node.func)}` raised {host_calls.text(error)}",
            label="called while the kernel is traced",
            labels=_raised_at(error),
            help="pass values it accepts; it runs in Python, before there is a kernel",
        )


def _is_print(node: ast.Call, function: Any) -> bool:
    """Python's own, which text that nobody runs does not know."""
    named = isinstance(node.func, ast.Name) and node.func.id == "print"
    return named and any(function is p for p in (builtins.print, SAFE_BUILTINS["print"]))


def _warn_of_print(node: ast.Call, args: tuple[Any, ...]) -> None:
    device = next(advice.device_values(args), None)
    if device is not None:
        warn(
            "TL152",
            f"`{ast.unparse(node)}` prints the expression once, while the kernel is traced",
            severity=Severity.WARNING,
            label="its value is only known when the kernel runs",
            help=f"print values with `T.print({device})`",
        )


def _raised_at(error: BaseException) -> tuple[Label, ...]:
    """Where a Python function of the user raised, for the call that led there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not Path(f.filename).is_relative_to(_PACKAGE)]
    if not own or own[-1].lineno is None or own[-1].colno is None:
        return ()
    last = own[-1]
    assert last.lineno is not None and last.colno is not None
    end_line = last.end_lineno or last.lineno
    end = (last.end_colno or last.colno) + 1
    span = Span(last.filename, last.lineno, last.colno + 1, end_line, max(end, last.colno + 2))
    return (Label(span, "raised here"),)


def _refuse_layout(frame: Frame, node: ast.Call, error: Exception) -> NoReturn:
    """A layout whose function gives no index for some element."""
    given = [*node.args[1:2], *(k.value for k in node.keywords if (k.arg or "").startswith("forw"))]
    reject(
        "TL311",
        f"the function of `{ast.unparse(node.func)}` gives no index: {error}",
        span=frame.span(given[0]) if given else None,
        help="return one integer, or a tuple of integers, made of the indices",
    )


def _mentions_symbols(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    flat = [
        x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (tuple, list)) else (a,))
    ]
    return any(isinstance(x, Expr) for x in flat)


def _refuses_symbols(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether a Python function would choke on values nobody has chosen, or misjudge them."""
    module = getattr(function, "__module__", "") or ""
    if module.startswith("tilelang") or function in _TAKES_SYMBOLS:
        return False
    return any(
        containers.contains_symbol(a) or (isinstance(a, Var) and a.kind in ("const", "dim"))
        for a in args
    )


# Builtins that only arrange what they are given, or compute with it.
_TAKES_SYMBOLS = (tuple, list, enumerate, zip, dict, set, reversed, len, sum, abs)


def _minimum(*args: Any) -> Any:
    return _fold("min", args)


def _maximum(*args: Any) -> Any:
    return _fold("max", args)


def _fold(op: str, args: tuple[Any, ...]) -> Any:
    result = args[0]
    for value in args[1:]:
        result = operators.binary(op, result, value)
    return result


def _convert(dtype: DType) -> Any:
    def convert(value: Any) -> Any:
        if is_unknown(value) or (dtype is INT32 and value.dtype.is_integer):
            return value
        return operators.cast(value, dtype)

    return convert


def _boolean(value: Any) -> Any:
    return value if is_unknown(value) else operators.as_condition(value)


_ON_EXPRESSIONS: dict[Any, Any] = {
    builtins.min: _minimum,
    builtins.max: _maximum,
    builtins.int: _convert(INT32),
    builtins.float: _convert(FLOAT32),
    builtins.bool: _boolean,
}
