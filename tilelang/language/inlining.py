"""Functions whose text becomes part of the kernel: macros, helpers read as text, lambdas."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tilelang.language import expressions
from tilelang.language.frame import Definition, Frame, Local
from tilelang.language.source import FunctionNode
from tilelang.language.symbols import SymbolTable
from tilelang.language.types import Ref
from tilelang.program.context import Reject, Trace, active_trace, reject
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Label, Span

MAX_INLINE_DEPTH = 64
# In one kernel: a chain of 24 macros in which each calls the next one twice makes 17 million.
MAX_INLINED_CALLS = 10_000
# Findings that stand for a TypeError or ValueError of Python's own.
_PYTHON_ERRORS = frozenset({"TL116", "TL151", "TL152", "TL183", "TL236"})


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
    if _is_given_up(trace, definition, is_macro):
        trace.complete = False
        return Unknown(f"{definition.name}(…)")
    stack: list[FunctionNode] = trace.facts.setdefault("inlining", [])
    if depth > MAX_INLINE_DEPTH:
        # Said once: those around it would find the same again, each as often as all below it.
        _endless(trace).update(node for node, many in Counter(stack).items() if many > 1)
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
    stack.append(definition.node)
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
        stack.pop()
        trace.facts["inline_depth"] = depth - 1
        trace.span = call_span
    return frame.returned


def _is_given_up(trace: Trace, definition: Definition, is_macro: bool) -> bool:
    """Whether a call is not looked into any more; TooLarge where that would lose device code."""
    from tilelang.language.statements import TooLarge

    if definition.node in _endless(trace):
        return True
    count: int = trace.facts.get("inlined_calls", 0) + 1
    trace.facts["inlined_calls"] = count
    if count > MAX_INLINED_CALLS and is_macro:
        raise TooLarge(f"calls macros more than {MAX_INLINED_CALLS} times")
    return count > MAX_INLINED_CALLS


def _endless(trace: Trace) -> set[FunctionNode]:
    """What expands itself without end; what a branch that may never run does is for such only."""
    fact = "endless_perhaps" if trace.speculative else "endless"
    found: set[FunctionNode] = trace.facts.setdefault(fact, set())
    return found


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


def call_macro(frame: Frame, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        if frame.in_condition:
            reject(
                "TL181",
                f"macro `{macro.name}` is called inside `and`, `or` or a conditional expression",
                help="call it on a line of its own and use the result; `if` chooses between calls",
            )
        return inline(frame.trace, macro.definition, args, kwargs, is_macro=True)
    except Reject:
        if frame.trace.launch is None:
            frame.trace.facts["launch_failed"] = True  # it may have been in there
        raise


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
