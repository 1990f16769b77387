"""Which names does the language have? The compiler's own catalogue, as values that travel."""

from __future__ import annotations

import inspect
from typing import Any

import tilelang.language as language
from tilelang.dtypes import SCALARS, VECTOR_LANES, DType
from tilelang.language.catalog import LanguageFunction
from tilelang_lsp.model import Catalogue, Entry, Parameter

_BY_NAME = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def read_catalogue() -> Catalogue:
    """Every public name of `tilelang.language`, functions first."""
    entries = {name: _function(name, f) for name, f in language.FUNCTIONS.items()}
    vectors = (f"{base}x{lanes}" for base in SCALARS for lanes in VECTOR_LANES)
    for name in (*language.__all__, *vectors):
        if name not in entries and hasattr(language, name):
            entries[name] = _other(name, getattr(language, name))
    return Catalogue(entries)


def _function(name: str, function: LanguageFunction) -> Entry:
    code = inspect.unwrap(function.function).__code__
    return Entry(
        name,
        function.kind,
        function.doc,
        parameters(function.signature),
        function.targets,
        code.co_filename,
        code.co_firstlineno,
    )


def _other(name: str, value: Any) -> Entry:
    """A dtype, a type for annotations, or a constant."""
    match value:
        case DType(lanes=lanes):
            width = f"{lanes} × {value.bits}" if lanes > 1 else f"{value.bits}"
            return Entry(name, "dtype", f"The dtype {value.name}, {width} bits wide.")
        case LanguageFunction():
            return _function(name, value)
        case bool() | int() | float() | str():
            return Entry(name, "constant", f"The constant {value!r}.")
        case type():
            return Entry(name, "type", inspect.getdoc(value) or "")
        case _:
            return Entry(name, "type", inspect.getdoc(type(value)) or "")


def parameters(signature: inspect.Signature) -> tuple[Parameter, ...]:
    """The parameters of a signature, without annotations, as one writes a call."""
    out: list[Parameter] = []
    marked = False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            marked = True
        if p.kind is p.KEYWORD_ONLY and not marked:
            out.append(Parameter("*", "*", keyword=False))
            marked = True
        out.append(Parameter(p.name, _text(p), p.kind in _BY_NAME, p.kind in _VARIADIC))
    return tuple(out)


def _text(parameter: inspect.Parameter) -> str:
    plain = parameter.replace(annotation=inspect.Parameter.empty)
    if parameter.default is not inspect.Parameter.empty:
        shown = repr(parameter.default)
        if len(shown) > 24 or " at 0x" in shown:
            shown = "…"
        return f"{parameter.name}={shown}"
    return str(plain)
