"""Are two traced kernels the same kernel, in this process and in any other?

The digest covers the whole typed program: everything the front end read (helper functions, macros,
captured values, specialisation) has left its mark there, so nothing has to be tracked on the side
and no captured value needs to be hashable. Names, dtypes, shapes and positions count; comments,
the file's name and where in the file the kernel stands do not: positions are taken relative to the
first one seen of each file, and `rebase` moves a stored position back to where the kernel is now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final

from tilelang.dtypes import DType, as_dtype
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic, Frame, Label, Span

# One file a kernel comes from, and the line that positions in it are counted from.
Origin = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`digest` names the kernel; `origins` say where it stands today."""

    digest: str
    origins: tuple[Origin, ...]


class _Unhashable(Exception):
    pass


def fingerprint(function: Function) -> Fingerprint | None:
    """The fingerprint of `function`, or None if it holds an object whose identity is unclear."""
    writer = _Writer()
    try:
        writer.write(function)
    except _Unhashable:
        return None
    digest = hashlib.sha256("\x00".join(writer.parts).encode()).hexdigest()
    return Fingerprint(digest, tuple(writer.origins.items()))


def rebase(span: Span | None, old: tuple[Origin, ...], new: tuple[Origin, ...]) -> Span | None:
    """`span`, taken while the kernel stood at `old`, now that it stands at `new`."""
    if span is None:
        return None
    for (file, base), (new_file, new_base) in zip(old, new, strict=False):
        if file == span.file:
            shift = new_base - base
            line, end_line = span.line + shift, span.end_line + shift
            return replace(span, file=new_file, line=max(1, line), end_line=max(1, end_line))
    return span


def rebase_diagnostic(
    diagnostic: Diagnostic, old: tuple[Origin, ...], new: tuple[Origin, ...]
) -> Diagnostic:
    """As `rebase`, for every position of a diagnostic; fixes are dropped, they edit old text."""
    if old == new:
        return diagnostic

    def moved(span: Span) -> Span:
        return rebase(span, old, new) or span

    return replace(
        diagnostic,
        span=rebase(diagnostic.span, old, new),
        labels=tuple(Label(moved(x.span), x.text) for x in diagnostic.labels),
        calls=tuple(Frame(x.function, moved(x.span)) for x in diagnostic.calls),
        fixes=(),
    )


class _Writer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.origins: dict[str, int] = {}
        self.numbers: dict[int, int] = {}
        # Kept alive, so that no id is used twice.
        self.alive: list[Any] = []

    def write(self, value: Any) -> None:
        writer = _SIMPLE.get(type(value))
        if writer is not None:
            self.parts.append(writer(value))
        elif isinstance(value, Span):
            self.span(value)
        elif isinstance(value, DType):
            self.parts.append(f"dtype {value.name}")
        elif isinstance(value, Enum):
            self.parts.append(f"enum {type(value).__qualname__}.{value.name}")
        elif is_dataclass(value) and not isinstance(value, type):
            self.node(value)
        elif isinstance(value, tuple | list):
            self.parts.append(f"{type(value).__name__} {len(value)}")
            for item in value:
                self.write(item)
        elif isinstance(value, Mapping):
            self.parts.append(f"map {len(value)}")
            for key, item in value.items():
                self.write(key)
                self.write(item)
        else:
            self.other(value)

    def node(self, value: Any) -> None:
        number = self.numbers.get(id(value))
        if number is not None:
            self.parts.append(f"#{number}")
            return
        self.numbers[id(value)] = len(self.numbers)
        self.alive.append(value)
        cls = type(value)
        names = _FIELDS.get(cls)
        if names is None:
            names = _FIELDS[cls] = tuple(f.name for f in fields(value))
        self.parts.append(f"{cls.__module__}.{cls.__qualname__}")
        for name in names:
            self.write(getattr(value, name))

    def span(self, span: Span) -> None:
        base = self.origins.setdefault(span.file, span.line)
        file = list(self.origins).index(span.file)
        self.parts.append(
            f"@{file}:{span.line - base}:{span.column}:{span.end_line - base}:{span.end_column}"
        )

    def other(self, value: Any) -> None:
        if isinstance(value, set | frozenset):
            try:
                ordered = sorted(value)
            except TypeError:
                raise _Unhashable from None
            self.write(("set", *ordered))
        elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
            digest = hashlib.sha256(value.tobytes()).hexdigest()
            self.parts.append(f"array {value.dtype} {value.shape} {digest}")
        elif (dtype := as_dtype(value)) is not None:
            self.parts.append(f"dtype {dtype.name}")
        else:
            raise _Unhashable


_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
_SIMPLE: Final[dict[type, Callable[[Any], str]]] = {
    type(None): repr,
    bool: repr,
    int: repr,
    # repr tells -0.0 from 0.0 and is exact.
    float: lambda value: f"float {value!r}",
    str: lambda value: f"str {len(value)} {value}",
    bytes: lambda value: f"bytes {hashlib.sha256(value).hexdigest()}",
}
