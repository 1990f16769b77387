"""What imports mean when nothing may be imported: our own names, safe modules, unknowns."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.program.expr import Expr
from tilelang.program.unknown import Unknown


@dataclass(frozen=True, slots=True, eq=False)
class JitMarker:
    """`tilelang.jit`, with whatever arguments: recognised as a decorator, never run."""

    kwargs: dict[str, Any] = field(default_factory=dict)

    def __call__(self, function: Any = None, **kwargs: Any) -> Any:
        return JitMarker({**self.kwargs, **kwargs}) if function is None else function


@dataclass(frozen=True, slots=True, eq=False)
class PassThrough:
    """A decorator that leaves the kernel's meaning alone (`tilelang.autotune`)."""

    def __call__(self, function: Any = None, **kwargs: Any) -> Any:
        return self if function is None else function


class StaticModule:
    """A module of ours by attribute; names that do not exist are unknown."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        self._name = name
        self._members = members

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return self._members.get(attribute, Unknown(f"{self._name}.{attribute}"))


def static_module(name: str) -> Any:
    """The stand-in for `import name`."""
    if name == "tilelang.language":
        import tilelang.language as language

        return language
    if name == "tilelang":
        import tilelang.language as language

        return StaticModule(
            "tilelang",
            {
                "language": language,
                "jit": JitMarker(),
                "autotune": PassThrough(),
                "cdiv": _cdiv,
                "next_power_of_2": _next_power_of_2,
                "layout": static_module("tilelang.layout"),
                "math": StaticModule(
                    "tilelang.math", {"cdiv": _cdiv, "next_power_of_2": _next_power_of_2}
                ),
            },
        )
    if name == "tilelang.layout":
        try:
            import tilelang.layout as layout
        except ImportError:
            return Unknown(name)
        return layout
    if name == "tilelang.autotuner":
        return StaticModule(name, {"autotune": PassThrough()})
    if name in _PURE:
        return _PURE[name]
    return Unknown(name)


_PURE: Final[dict[str, Any]] = {
    "math": math,
    "operator": operator,
    "functools": StaticModule("functools", {"reduce": functools.reduce}),
    "itertools": StaticModule(
        "itertools",
        {name: getattr(itertools, name) for name in ("accumulate", "chain", "islice")},
    ),
}


def _cdiv(a: Any, b: Any) -> Any:
    return -(a // -b) if not isinstance(a, Expr) else (a + b - 1) // b


def _next_power_of_2(n: Any) -> Any:
    return (
        Unknown("next_power_of_2") if isinstance(n, Expr) else 1 << max(0, int(n) - 1).bit_length()
    )
