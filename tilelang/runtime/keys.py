"""Is a call made with the same compile-time values as one before?"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Hashable, Mapping
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
from tilelang_diagnostics.model import Label, Span


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
    function: Callable[..., Any], values: Mapping[str, Any], error: CompileError
) -> CompileError:
    """`error`, with one diagnostic at the call in place of all about a value that is no size."""
    parameters = inspect.signature(function).parameters
    for name, value in values.items():
        help = _size_instead(parameters.get(name), value)
        found = [d for d in error.diagnostics if d.code in _SIZES and _reads(d.span, name)]
        if help is None or not found:
            continue
        first = found[0]
        zero = isinstance(value, int)
        one = diagnose(
            "TL117" if zero else "TL116",
            f"`{name}` of `{function.__name__}` is {value!r}, not "
            f"{'a positive' if zero else 'an'} integer",
            span=users_place(),
            label="given here",
            labels=() if first.span is None else (Label(first.span, first.message),),
            help=help,
        )
        rest = [d for d in error.diagnostics if d not in found]
        return error_for((one, *rest), error.sources)
    return error


def _size_instead(parameter: inspect.Parameter | None, value: Any) -> str | None:
    """What to pass, where `value` is no size and the default, if there is one, is."""
    if parameter is None or isinstance(value, bool):
        return None
    default = parameter.default
    if default is parameter.empty:
        return "pass an integer" if isinstance(value, float | str) else None
    if type(default) is not int or default <= 0:
        return None
    if not isinstance(value, float | str) and not (isinstance(value, int) and value <= 0):
        return None
    return f"pass one, such as {parameter.name}={default}"


def _reads(span: Span | None, name: str) -> bool:
    """Whether the text of a span has a name."""
    if span is None or span.line != span.end_line:
        return False
    text = linecache.getline(span.file, span.line)[span.column - 1 : span.end_column - 1]
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


# An argument of the wrong kind, or out of range; a shape that is none.
_SIZES = frozenset({"TL116", "TL117", "TL215"})


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


def _compares_oddly(value: Any) -> bool:
    """Tensors and expressions answer `==` with something that is no bool."""
    from tilelang.program.expr import Expr

    return isinstance(value, Expr) or _is_tensor(value)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")
