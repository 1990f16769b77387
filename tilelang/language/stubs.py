"""What do type checkers need to know of the language? `python -m tilelang.language.stubs`.

Prints `tilelang/language/__init__.pyi`. The names of the language are made of the catalogue when it
is imported, which no checker sees. `prim_func` and `macro` are declared as `typing.no_type_check`:
a parameter `A: T.Tensor((M, K), "float16")` declares a tensor and is no type, and checkers leave
functions under that decorator alone. What gives an expression is `Any`, since kernels give the same
name to numbers of Python and of the device; what gives nothing, a buffer or a loop says so.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import tilelang.language as T
from tilelang.language.catalog import LanguageFunction
from tilelang.language.types import PointerType, TensorFactory

_HEAD = '''\
"""The language: `import tilelang.language as T`. Made by `python -m tilelang.language.stubs`."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final
from typing import no_type_check as macro
from typing import no_type_check as prim_func

'''
_DECLARED = '''
FAMILIES: Final[tuple[ModuleType, ...]]
FUNCTIONS: dict[str, LanguageFunction]
CONSTANTS: dict[str, Any]

class _Frame:
    """What `with` opens. It lets exceptions pass."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...

'''
_DECORATORS = ("macro", "prim_func")
_DECLARED_TYPES = (TensorFactory, PointerType)
_OTHERS = ("Serial", "Unroll", "Vectorized")
_RETURNS: Final = {
    "None": "None",
    "Buffer": "Buffer",
    "LoopFrame": "Iterator[Any]",
    "ScopeFrame": "_Frame",
    "LaunchFrame": "_Frame",
    "SourceLaunchFrame": "_Frame",
}


def stubs() -> str:
    """The text of the stub file."""
    names = sorted({*T.__all__, *_OTHERS, *_vectors()})
    imports = sorted({_import(name) for name in names} - {""} | {_LANGUAGE_FUNCTION})
    lines = [_HEAD + "\n".join(imports), *_two_ways(names), _DECLARED.rstrip("\n"), ""]
    lines += (line for name in names for line in _declaration(name))
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(T.__all__)), "]"]
    return "\n".join(lines) + "\n"


_LANGUAGE_FUNCTION: Final = "from tilelang.language.catalog import LanguageFunction"


def _two_ways(names: list[str]) -> Iterator[str]:
    """`T.Tensor[[M, K], dtype]` is a type for Pyright by a class, and for mypy only without one."""
    declared = [name for name in names if isinstance(getattr(T, name), _DECLARED_TYPES)]
    yield "\nMYPY: bool  # mypy takes it to be true, and nobody else\nif MYPY:"
    yield from (f"    from tilelang.language._seen_by_mypy import {n} as {n}" for n in declared)
    yield "else:"
    yield from (f"    from tilelang.language._seen_by_pyright import {n} as {n}" for n in declared)


def _vectors() -> Iterator[str]:
    return (n for n, value in vars(T).items() if isinstance(value, T.DType))


def _import(name: str) -> str:
    """Classes, modules and plain functions are those they are at run time."""
    value = getattr(T, name)
    if isinstance(value, ModuleType):
        return f"from {value.__name__.rpartition('.')[0]} import {name} as {name}"
    if isinstance(value, type) or inspect.isfunction(value):
        return f"from {value.__module__} import {name} as {name}"
    return ""


def _declaration(name: str) -> Iterator[str]:
    value = getattr(T, name)
    if name in _DECORATORS or _import(name):
        return
    if isinstance(value, LanguageFunction):
        yield f"def {name}({_parameters(value.signature)}) -> {_returned(value)}:"
        yield f'    """{_summary(value.doc)}"""'
        yield ""
    elif isinstance(value, T.DType):
        yield f"{name}: Final[DType]"
    elif not isinstance(value, _DECLARED_TYPES):
        yield f"{name}: Any"


def _returned(function: LanguageFunction) -> str:
    """Statements that are no tile operations are also written `T.evaluate(T.sync_threads())`."""
    returned = _RETURNS.get(str(function.signature.return_annotation), "Any")
    return "Any" if returned == "None" and function.kind != "tile" else returned


def _summary(doc: str) -> str:
    first = doc.partition("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return " ".join(first.split())


def _parameters(signature: inspect.Signature) -> str:
    """Parameters by name, of any type; which are left out is what matters."""
    parts, marked = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not marked:
            parts.append("*")
            marked = True
        stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        marked = marked or stars == "*"
        parts.append(f"{stars}{p.name}: Any{_default(p)}")
    return ", ".join(parts)


def _default(p: inspect.Parameter) -> str:
    """The value itself where one can read it."""
    if p.default is p.empty:
        return ""
    plain = p.default is None or type(p.default) in (bool, int, float, str)
    return f" = {p.default!r}" if plain else " = ..."


if __name__ == "__main__":
    sys.stdout.write(stubs())
