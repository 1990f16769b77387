"""Is a call made with the same compile-time values as one before?"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from tilelang_diagnostics import CompileError, did_you_mean, failure


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
                f"argument {name} of {kernel} is a {type(value).__name__}, which cannot be "
                "hashed, so its kernel could not be found again",
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


def refuse_unknown(
    called: str, unknown: Mapping[str, Any], function: Callable[..., Any], help: str = ""
) -> None:
    """TL720 for the first keyword that a function of ours does not have, if there is one."""
    known = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind is not p.VAR_KEYWORD]  # fmt: skip
    for name in unknown:
        raise failure(
            "TL720",
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
