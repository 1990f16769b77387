"""Calls inside a kernel: language functions, macros, helpers, lambdas and plain Python."""

from __future__ import annotations

import ast
import builtins
import inspect
import traceback
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from tilelang.dtypes import DType
from tilelang.language import expressions, loops
from tilelang.language.catalog import LanguageFunction
from tilelang.language.frame import Definition, Frame, FrameEnvironment, Local
from tilelang.language.symbols import SymbolTable
from tilelang.language.types import PointerType, Ref, TensorFactory
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import CallSite, Reject, Trace, active_trace, reject
from tilelang.program.expr import FLOAT32, INT32, Expr, Load, Var, VarRef
from tilelang.program.unknown import Unknown, contains_unknown, is_unknown
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Label, Span

MAX_INLINE_DEPTH = 64
_PACKAGE = Path(__file__).parents[1]
# Findings that stand for a TypeError or ValueError of Python's own.
_PYTHON_ERRORS = frozenset({"TL116", "TL151", "TL152", "TL183", "TL236"})


def call(frame: Frame, node: ast.Call) -> Any:
    """The value of a call, after inlining, tracing or running what it names."""
    target_name, frame.trace.target_name = frame.trace.target_name, None
    function = expressions.evaluate(frame, node.func)
    args, kwargs = _arguments(frame, node)
    frame.trace.target_name = target_name
    if isinstance(function, (LanguageFunction, TensorFactory)):
        return _call_language(frame, node, function, args, kwargs)
    if isinstance(function, Macro):
        return _call_macro(frame, function, args, kwargs)
    if isinstance(function, StaticFunction):
        return call_helper(frame, function, args, kwargs)
    if isinstance(function, InterpretedLambda):
        return function.evaluate(*args, **kwargs)
    if isinstance(function, Unknown) or expressions.is_symbol(function):
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
    return "is a value of the kernel" if isinstance(value, Expr) else f"is a {type(value).__name__}"


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


@dataclass(frozen=True, slots=True, eq=False)
class Macro:
    """A function inlined into the kernels that call it (`@T.macro`)."""

    definition: Definition

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is None:
            from tilelang.language.errors import outside_kernel

            raise outside_kernel(self.name)
        return inline(trace, self.definition, args, kwargs, is_macro=True)


@dataclass(frozen=True, slots=True, eq=False)
class StaticFunction:
    """A function known as text, interpreted where it is called."""

    definition: Definition
    frame: Frame

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace() or self.frame.trace
        return inline(trace, self.definition, args, kwargs, is_macro=False, host=self.frame.host)


@dataclass(frozen=True, slots=True, eq=False)
class InterpretedLambda:
    """A lambda of the kernel's text; callable from Python too (layout functions)."""

    frame: Frame
    node: ast.Lambda
    names: dict[str, Local]
    defaults: dict[str, Any]

    @staticmethod
    def define(frame: Frame, node: ast.Lambda) -> InterpretedLambda:
        """The lambda as it stands here: names and defaults have the values they have now."""
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        given = [
            *zip(reversed(positional), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        defaults = {p.arg: expressions.evaluate(frame, d) for p, d in given if d is not None}
        return InterpretedLambda(frame, node, dict(frame.names), defaults)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called by Python: what Python would have raised is raised, for callers that expect it."""
        try:
            return self.evaluate(*args, **kwargs)
        except Reject as rejected:
            if rejected.diagnostic.code in _PYTHON_ERRORS:
                raise TypeError(rejected.diagnostic.message) from rejected
            raise

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the body for these arguments."""
        frame = self.frame
        inner = Frame(frame.trace, frame.source, frame.env, SymbolTable(), "<lambda>", frame.host)
        inner.names = dict(self.names)
        bound = _bind(self.node.args, "<lambda>", args, kwargs, frame, self.defaults)
        for name, value in bound.items():
            inner.names[name] = Local(value, frame.span(self.node), ())
        return expressions.evaluate(inner, self.node.body)

    @property
    def __code__(self) -> Any:
        raise AttributeError("__code__")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the indices a layout function takes."""
        return tuple(a.arg for a in self.node.args.args if a.arg not in self.defaults)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in self.parameters])


class HelperRaised(Exception):
    """A helper known as text raises: unwinds to the statement of the kernel that called it."""

    def __init__(self, function: str, text: str, span: Span | None) -> None:
        super().__init__(text)
        self.function = function
        self.text = text
        self.span = span


def inline(
    trace: Trace,
    definition: Definition,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    is_macro: bool,
    host: bool = False,
) -> Any:
    """Interpret the body of `definition` where it is called and give its return value."""
    from tilelang.language import assign, statements

    depth = trace.facts.get("inline_depth", 0) + 1
    if depth > MAX_INLINE_DEPTH:
        reject(
            "TL180",
            f"`{definition.name}` expands itself without end",
            help="macros are unrolled while tracing; end the recursion on a Python value",
        )
    symbols = trace.facts.setdefault("symbols", SymbolTable())
    frame = Frame(
        trace, definition.source, definition.env, symbols, definition.name, host,
        is_macro=is_macro, depth=depth, node=definition.node,
    )  # fmt: skip
    call_span = trace.span
    bound = _bind(definition.node.args, definition.name, args, kwargs, frame, definition.defaults)
    trace.facts["inline_depth"] = depth
    try:
        with trace.inlined(definition.name, call_span):
            for parameter in _all_parameters(definition.node.args):
                assign.bind_parameter(
                    frame,
                    parameter,
                    bound[parameter.arg],
                    by_reference=_is_ref(frame, parameter, definition),
                )
            statements.execute_block(frame, definition.node.body)
    finally:
        trace.facts["inline_depth"] = depth - 1
        trace.span = call_span
    return frame.returned


def call_helper(frame: Frame, function: StaticFunction, args: Any, kwargs: Any) -> Any:
    """The value of a helper known as text; what it raises is the fault of the kernel's call."""
    if frame.host:
        return function(*args, **kwargs)
    try:
        return function(*args, **kwargs)
    except HelperRaised as raised:
        reject(
            "TL183",
            f"`{function.definition.name}` raised {raised.text}",
            label="called while the kernel is traced",
            labels=() if raised.span is None else (Label(raised.span, "raised here"),),
            help="pass values it accepts",
        )


def _call_macro(frame: Frame, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if frame.in_condition:
        reject(
            "TL181",
            f"macro `{macro.name}` is called inside `and`, `or` or a conditional expression",
            help="call it on a line of its own and use the result",
        )
    return inline(frame.trace, macro.definition, args, kwargs, is_macro=True)


def _arguments(frame: Frame, node: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args.extend(expressions.iterate(expressions.evaluate(frame, arg.value)))
        else:
            args.append(expressions.evaluate(frame, arg))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = expressions.evaluate(frame, keyword.value)
        if keyword.arg is None:
            kwargs.update(value if isinstance(value, dict) else {})
        else:
            kwargs[keyword.arg] = value
    return tuple(args), kwargs


def _call_python(
    frame: Frame, node: ast.Call, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a Python callable now; builtins that meet expressions become part of the kernel."""
    if function in _ON_EXPRESSIONS and any(isinstance(a, (Expr, Unknown)) for a in args):
        return _ON_EXPRESSIONS[function](*args)
    if function is builtins.range and len(args) == 3 and args[2] == 0 and not frame.host:
        reject("TL142", "a loop with step 0 never ends", help="use a non-zero step")
    if function is builtins.range and any(isinstance(a, (Expr, Region)) for a in args):
        return loops.range_loop(*args)
    if contains_unknown(args) or contains_unknown(kwargs):
        return Unknown(f"{ast.unparse(node.func)}(…)")
    if frame.static and _refuses_symbols(function, args):
        return Unknown(f"{ast.unparse(node.func)}(…)")
    try:
        return function(*args, **kwargs)
    except (Reject, CompileError):
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
        if frame.static:
            return Unknown(f"{ast.unparse(node.func)}(…)")
        reject(
            "TL183",
            f"`{ast.unparse(node.func)}` raised {type(error).__name__}: {error}",
            label="called while the kernel is traced",
            labels=_raised_at(error),
            help="pass values it accepts; it runs in Python, before there is a kernel",
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
        expressions.contains_symbol(a) or (isinstance(a, Var) and a.kind in ("const", "dim"))
        for a in args
    )


# Builtins that only arrange what they are given, or compute with it.
_TAKES_SYMBOLS = (tuple, list, enumerate, zip, dict, set, reversed, len, sum, abs)


def _bind(
    parameters: ast.arguments,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    frame: Frame,
    defaults: Any,
) -> dict[str, Any]:
    """Match arguments to parameters as Python does; TL112–TL115 where they do not match."""
    signature = _signature_of(parameters, frame, defaults)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        text = str(error)
        code = (
            "TL113"
            if "missing" in text
            else "TL114"
            if "too many" in text
            else ("TL112" if "unexpected" in text else "TL115")
        )
        reject(code, f"`{name}`: {text}", help=f"signature: {name}{signature}")
    bound.apply_defaults()
    return dict(bound.arguments)


def _signature_of(parameters: ast.arguments, frame: Frame, defaults: Any) -> inspect.Signature:
    kinds = inspect.Parameter
    out: list[inspect.Parameter] = []
    positional = [*parameters.posonlyargs, *parameters.args]
    first_default = len(positional) - len(parameters.defaults)
    for position, parameter in enumerate(positional):
        kind = (
            kinds.POSITIONAL_ONLY
            if position < len(parameters.posonlyargs)
            else (kinds.POSITIONAL_OR_KEYWORD)
        )
        node = parameters.defaults[position - first_default] if position >= first_default else None
        out.append(kinds(parameter.arg, kind, default=_default(parameter, node, frame, defaults)))
    if parameters.vararg is not None:
        out.append(kinds(parameters.vararg.arg, kinds.VAR_POSITIONAL))
    for parameter, node in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        default = _default(parameter, node, frame, defaults)
        out.append(kinds(parameter.arg, kinds.KEYWORD_ONLY, default=default))
    if parameters.kwarg is not None:
        out.append(kinds(parameters.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(out)


def _default(parameter: ast.arg, node: ast.expr | None, frame: Frame, defaults: Any) -> Any:
    if parameter.arg in defaults:
        return defaults[parameter.arg]
    return inspect.Parameter.empty if node is None else expressions.evaluate(frame, node)


def _all_parameters(parameters: ast.arguments) -> list[ast.arg]:
    extra = [p for p in (parameters.vararg, parameters.kwarg) if p is not None]
    return [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs, *extra]


def _is_ref(frame: Frame, parameter: ast.arg, definition: Definition) -> bool:
    if parameter.annotation is None:
        return False
    annotation = definition.annotations.get(parameter.arg)
    if annotation is None or isinstance(annotation, str):
        text = ast.unparse(parameter.annotation)
        return text.split("[")[0].split(".")[-1].strip("'\"") == "Ref"
    return isinstance(annotation, type) and issubclass(annotation, Ref)


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

__all__ = [
    "FrameEnvironment",
    "InterpretedLambda",
    "Load",
    "Macro",
    "StaticFunction",
    "VarRef",
    "call",
    "inline",
]
