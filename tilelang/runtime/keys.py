"""Is a call made with the same compile-time values as one before?"""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import re
from collections.abc import Callable, Hashable, Mapping
from types import SimpleNamespace
from typing import Any

from tilelang.program.context import users_place
from tilelang_diagnostics import (
    CompileError,
    diagnose,
    did_you_mean,
    error_for,
    failure,
    with_article,
)
from tilelang_diagnostics.model import Diagnostic, Label, Span


def freeze(value: Any) -> Hashable:
    """`value` as a key: equal only for values a kernel cannot tell apart (1, 1.0 and True are not).

    Raises TypeError for what cannot be hashed.
    """
    match value:
        case float():
            # 0.0 and -0.0 are equal and differ.
            return (float, value.hex())
        case int() | str() | None:
            return (value.__class__, value)
        case list() | tuple():
            return (value.__class__, tuple(freeze(v) for v in value))
        case set() | frozenset():
            return (value.__class__, frozenset(freeze(v) for v in value))
        case Mapping():
            return (dict, tuple((freeze(k), freeze(v)) for k, v in value.items()))
        case SimpleNamespace():
            return (value.__class__, freeze(vars(value)))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            named = tuple(f.name for f in dataclasses.fields(value))
            return (value.__class__, tuple((n, freeze(getattr(value, n))) for n in named))
        case _ if _has_state(value):
            return (value.__class__, _ById(value), _frozen_state(value))
        case _:
            hash(value)
            return (value.__class__, _ById(value) if _compares_oddly(value) else value)


def freeze_named(kernel: str, values: Mapping[str, Any]) -> Hashable:
    """The key of several named values; TL714 names the one that cannot be hashed."""
    frozen = []
    for name, value in values.items():
        try:
            frozen.append((name, freeze(value)))
        except TypeError:
            tensor = _is_tensor(value)
            raise failure(
                "TL714",
                f"argument {name} of {kernel} is {with_article(type(value).__name__)}, which "
                "cannot be hashed, so its kernel could not be found again",
                help=f"declare a tensor of the kernel, `{name}: T.Tensor(shape, dtype)`; a factory "
                "takes what kernels differ in, and its kernel the tensors"
                if tensor
                else "give each tensor a parameter of its own, and declare it"
                if isinstance(value, tuple | list) and any(_is_tensor(v) for v in value)
                else "pass numbers, strings, dtypes, or tuples, lists and dicts of them",
            ) from None
    return tuple(frozen)


def bad_call(function: Callable[..., Any], error: TypeError) -> CompileError:
    """TL701 or TL720 for a call that Python would not make, with how to call it."""
    text = str(error).replace("()", "", 1)
    signature = inspect.signature(function)
    known = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = re.search(r"unexpected keyword argument '(\w+)'", text)
    return failure(
        "TL720" if "keyword" in text else "TL701",
        f"{text}{did_you_mean(named[1], known) if named else ''}",
        help=f"call it as {getattr(function, '__name__', 'it')}{signature}",
    )


def blamed(
    function: Callable[..., Any],
    values: Mapping[str, Any],
    error: CompileError,
    again: Callable[[Mapping[str, Any]], object] | None = None,
    given: Mapping[str, Span | None] | None = None,
    instead: Mapping[str, Any] | None = None,
) -> CompileError:
    """`error`, with one diagnostic at the call in place of all about a value that is no size.

    `again` makes the attempt with other values: what a size does not cure is somebody else's
    fault, and is kept. `given` says where values come from, `instead` what sizes they might have.
    """
    parameters = inspect.signature(function).parameters
    found: list[Diagnostic] = []
    left, values = error.diagnostics, dict(values)
    for name, value in list(values.items()):
        good = (instead or {}).get(name)
        help = _size_instead(parameters.get(name), value, good)
        about = [d for d in left if d.code in _SIZES]
        if help is None or not about:
            continue
        if good is None:
            good = parameters[name].default
        values[name] = good
        cured = None if again is None or type(good) is not int else _attempt(again, values)
        if cured is None or len(cured) >= len(left):
            about = [d for d in about if _reads(d.span, name)]
            if not about:
                values[name] = value
                continue
            cured = tuple(d for d in left if d not in about)
        first = next((d for d in about if _reads(d.span, name)), about[0])
        code, what = _no_size(value)
        found.append(diagnose(
            code,
            f"`{name}` of `{function.__name__}` is {value!r}, not {what} integer",
            span=users_place() if given is None else given.get(name),
            label="given here" if given is None else f"is {value!r}",
            labels=() if first.span is None else (Label(first.span, first.message),),
            help=help,
        ))  # fmt: skip
        left = cured
    return error_for((*found, *left), error.sources) if found else error


def _attempt(
    again: Callable[[Mapping[str, Any]], object], values: Mapping[str, Any]
) -> tuple[Diagnostic, ...] | None:
    """What is wrong with other values; None where that is not known."""
    try:
        again(values)
    except CompileError as error:
        return error.diagnostics
    except Exception:
        return None
    return ()


def _no_size(value: Any) -> tuple[str, str]:
    if not isinstance(value, int):
        return "TL116", "an"
    return ("TL117", "a positive") if value <= 0 else ("TL117", "a 64-bit")


def _size_instead(parameter: inspect.Parameter | None, value: Any, good: Any) -> str | None:
    """What to pass, where `value` is no size and the default, if there is one, is."""
    if parameter is None or isinstance(value, bool):
        return None
    default = parameter.default if good is None else good
    if default is parameter.empty:
        return "pass an integer" if isinstance(value, float | str) else None
    if type(default) is not int or default <= 0:
        return None
    if isinstance(value, int) and 0 < value < 1 << 63:
        return None
    if value is not None and not isinstance(value, float | str | int):
        return None
    return f"pass one, such as {parameter.name}={default}"


def _reads(span: Span | None, name: str) -> bool:
    """Whether the text of a span has a name."""
    if span is None or span.line != span.end_line:
        return False
    text = linecache.getline(span.file, span.line)[span.column - 1 : span.end_column - 1]
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


# An argument of the wrong kind, or out of range; a shape, a grid that is none; too large a number.
_SIZES = frozenset({"TL116", "TL117", "TL165", "TL215", "TL235"})


def refuse_unknown(
    called: str, unknown: Mapping[str, Any], function: Callable[..., Any], help: str = ""
) -> None:
    """TL112 for the first keyword that a function of ours does not have, if there is one."""
    known = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind is not p.VAR_KEYWORD]  # fmt: skip
    for name in unknown:
        raise failure(
            "TL112",
            f"`{called}` has no parameter `{name}`{did_you_mean(name, known)}",
            help=help or f"it takes {', '.join(known)}",
        )


def binder(
    function: Callable[..., Any], without: frozenset[str] = frozenset()
) -> Callable[..., dict[str, Any]]:
    """A function with the parameters of `function` that returns what they are bound to, by name.

    Generated, because it costs a tenth of `inspect.signature(...).bind`. Parameters named in
    `without` are left out. Raises TypeError as a call of `function` would.
    """
    namespace: dict[str, Any] = {}
    parameters: list[str] = []
    names: list[str] = []
    keyword_only = False
    positional = True
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if name in without:
            continue
        default = ""
        if parameter.default is not parameter.empty:
            namespace[f"_default_{name}"] = parameter.default
            default = f"=_default_{name}"
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                parameters.append(f"*{name}")
                keyword_only, positional = True, False
            case parameter.VAR_KEYWORD:
                parameters.append(f"**{name}")
            case parameter.KEYWORD_ONLY:
                if not keyword_only:
                    parameters.append("*")
                    keyword_only = True
                parameters.append(name + default)
            case _:
                if positional and not default and any("=" in p for p in parameters):
                    # An allocated parameter stood between; the rest may still be given by name.
                    parameters.append("*")
                    keyword_only, positional = True, False
                parameters.append(name + default)
        names.append(name)
    body = ", ".join(f"{n!r}: {n}" for n in names)
    source = f"def {function.__name__}({', '.join(parameters)}): return {{{body}}}"
    exec(compile(source, f"<arguments of {function.__name__}>", "exec"), namespace)
    made: Callable[..., dict[str, Any]] = namespace[function.__name__]
    return made


class _ById:
    """An object that is itself only, whatever its own `==` says."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.value is self.value


def _has_state(value: Any) -> bool:
    """An object of a class of the user's that is equal to itself only: what it holds may change."""
    kind = type(value)
    return (
        getattr(kind, "__hash__", None) is object.__hash__
        and kind.__module__ != "builtins"
        and hasattr(value, "__dict__")
        and not isinstance(value, type)
        and not callable(value)
        and not _compares_oddly(value)
    )


def _frozen_state(value: Any) -> Hashable:
    """What an object holds now; objects in it by identity, so that a cycle ends."""
    state: list[tuple[str, Hashable]] = []
    for name, held in vars(value).items():
        try:
            state.append((name, _ById(held) if _has_state(held) else freeze(held)))
        except TypeError:
            state.append((name, _ById(held)))
    return tuple(state)


def _compares_oddly(value: Any) -> bool:
    """Tensors and expressions answer `==` with something that is no bool."""
    from tilelang.program.expr import Expr

    return isinstance(value, Expr) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")
