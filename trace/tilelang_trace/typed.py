"""Is what was read from a file of the types that its fields say?

Asked of each object as it is made: what it holds of the model was asked before, so that only
diagnostics, which are read elsewhere, are looked into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tilelang_diagnostics import Diagnostic

_T = TypeVar("_T")
_LARGEST: Final = 1 << 53  # what every reader of JSON holds exactly
_READ_ELSEWHERE: Final = Diagnostic.__module__


def checked(made: _T) -> _T:
    """`made`; TypeError for a field that is no such thing."""
    kind: Any = type(made)
    for name, is_right in _fields(kind):
        if not is_right(getattr(made, name)):
            raise TypeError(f"`{name}` is {type(getattr(made, name)).__name__}")
    return made


def a_text(value: Any) -> str:
    """A string; TypeError for anything else."""
    if type(value) is not str:
        raise TypeError(f"{type(value).__name__} where a string should be")
    return value


def a_count(value: Any) -> int:
    """A number that is not negative; TypeError for anything else."""
    if not _is_int(value) or value < 0:
        raise TypeError("no such number can be there")
    return int(value)


def pairs(value: Any) -> tuple[tuple[Any, Any], ...]:
    """What an object holds, in order; TypeError for anything else."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{type(value).__name__} where an object should be")
    return tuple(value.items())


_Check = Callable[[Any], bool]


@cache
def _fields(kind: Any) -> tuple[tuple[str, _Check], ...]:
    hints = get_type_hints(kind)
    return tuple((f.name, _check(hints[f.name])) for f in fields(kind))


def _check(hint: Any) -> _Check:
    """The question whether a value is of a type."""
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        any_of = tuple(map(_check, of))
        return lambda value: any(check(value) for check in any_of)
    if origin is tuple and of[-1] is ...:
        one = _check(of[0])
        return lambda value: type(value) is tuple and all(map(one, value))
    if origin is tuple:
        each = tuple(map(_check, of))
        return lambda value: (
            type(value) is tuple and len(value) == len(each)
            and all(check(x) for check, x in zip(each, value, strict=True))
        )  # fmt: skip
    if origin is Literal:
        return lambda value: type(value) is str
    if hint is NoneType:
        return lambda value: value is None
    if hint is int:
        return _is_int
    if hint is float:
        return lambda value: _is_int(value) or (type(value) is float and math.isfinite(value))
    if is_dataclass(hint) and hint.__module__ == _READ_ELSEWHERE:
        return lambda value: type(value) is hint and _is_right(value)
    return lambda value: isinstance(value, hint)


def _is_int(value: Any) -> bool:
    return type(value) is int and -_LARGEST <= value <= _LARGEST


def _is_right(made: Any) -> bool:
    kind: Any = type(made)
    return all(is_right(getattr(made, name)) for name, is_right in _fields(kind))
