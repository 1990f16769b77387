"""Does a call of Python's own raise whenever the kernel is traced?

    for i, row in enumerate(rows[0]):    # an element has no elements

A run calls it and sees. Text that nobody runs is read with what it says of its values: what is a
symbol there, or stands in a branch that may not be taken, may be anything.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tilelang.language import advice, containers, operands
from tilelang.program.buffer import Buffer, Region
from tilelang.program.expr import Expr
from tilelang.program.unknown import Unknown, contains_unknown

if TYPE_CHECKING:
    from tilelang.language.frame import Frame

_OWN: Final = ("builtins", "math", "operator", "_operator", "functools", "_functools", "itertools")
# They look at the running process, or remember; what they make of a value of the kernel is known.
_TAKE_NO_DEVICE_VALUE: Final = {"iter": builtins.iter, "next": builtins.next}


def text(error: Exception) -> str:
    """`TypeError: why`."""
    return f"{type(error).__name__}: {error}"


def of_builtin(function: Any, args: tuple[Any, ...]) -> Any | None:
    """The builtin that an unknown one is, where it is certain what it makes of its arguments."""
    certain = args and isinstance(args[0], (Buffer, Region, Expr)) and not _is_open(args)
    named = str(function) if isinstance(function, Unknown) else ""
    return _TAKE_NO_DEVICE_VALUE.get(named) if certain else None


def is_refused(frame: Frame, value: Any) -> bool:
    """Whether this is a value of the device in a function that Python runs: nothing there becomes
    part of the kernel but what the language computes."""
    if not frame.is_helper or frame.speculative or not frame.static or contains_unknown(value):
        return False
    return next(advice.device_values(value), None) is not None


@contextmanager
def perhaps(frame: Frame, decides: Any) -> Iterator[None]:
    """What is evaluated inside, a run may not come to, if nobody has chosen what decides."""
    open_ = operands.is_symbolic(decides)
    frame.trace.speculative += open_
    try:
        yield
    finally:
        frame.trace.speculative -= open_


def refuse_truth_in_helper(frame: Frame, condition: Any) -> None:
    """TL152 for a condition that Python asks, and only the device knows."""
    if isinstance(condition, (Expr, Buffer, Region)) and is_refused(frame, condition):
        bool(condition)


def raises_in_any_run(
    frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether what a call raised here, where nothing is run, is what every run raises."""
    at_top = frame.host and not frame.is_helper  # a factory, or the file: may expect it
    if at_top or frame.speculative or not _is_pythons_own(function):
        return False
    given = (*(args[1:] if function is filter else args), *kwargs.values())
    return not (_is_open(given) or any(_stands_for_another(value) for value in given))


def _is_pythons_own(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    home = getattr(function, "__module__", None) or type(owner).__module__
    return home in _OWN


def _is_open(given: tuple[Any, ...]) -> bool:
    return containers.contains_symbol(given) or advice.mentions_open(given)


def _stands_for_another(value: Any) -> bool:
    """Whether a run might have something else: a default that callers replace, or one of the
    front end's stand-ins."""
    home = type(value).__module__
    ours = home.startswith("tilelang.language") and type(value).__name__ != "InterpretedLambda"
    return value is None or ours
