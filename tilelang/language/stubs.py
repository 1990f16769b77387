"""What do type checkers need to know of the language? `python -m tilelang.language.stubs`.

Prints `tilelang/language/__init__.pyi`. The names of the language are made of the catalogue when it
is imported, which no checker sees. `prim_func` and `macro` are declared as `typing.no_type_check`:
a parameter `A: T.Tensor((M, K), "float16")` declares a tensor and is no type, and checkers leave
functions under that decorator alone.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import tilelang.language as T
from tilelang.language.catalog import LanguageFunction

_HEAD = '''\
"""The language: `import tilelang.language as T`. Made by `python -m tilelang.language.stubs`."""

from types import ModuleType
from typing import Any, Final
from typing import no_type_check as macro
from typing import no_type_check as prim_func

from tilelang.dtypes import DType, dtype
from tilelang.language.catalog import LanguageFunction
from tilelang.language.primfunc import PrimFunc
from tilelang.program.buffer import Buffer

FAMILIES: Final[tuple[ModuleType, ...]]
FUNCTIONS: dict[str, LanguageFunction]
CONSTANTS: dict[str, Any]
'''
_DECORATORS = ("macro", "prim_func")
_IMPORTED = ("Buffer", "DType", "PrimFunc", "dtype")
_OTHERS = ("Serial", "Unroll", "Vectorized")


def stubs() -> str:
    """The text of the stub file."""
    names = sorted({*T.__all__, *_OTHERS, *_vectors()} - {"types"})
    lines = [_HEAD]
    lines += (line for name in names for line in _declaration(name))
    exported = sorted({*names, "FAMILIES", "FUNCTIONS", "CONSTANTS"})
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in exported), "]"]
    return "\n".join(lines) + "\n"


def _vectors() -> Iterator[str]:
    return (n for n, value in vars(T).items() if isinstance(value, T.DType))


def _declaration(name: str) -> Iterator[str]:
    value = getattr(T, name)
    if name in _DECORATORS or name in _IMPORTED:
        return
    if isinstance(value, LanguageFunction):
        yield f"def {name}({_parameters(value.signature)}) -> Any:"
        doc = value.doc.partition("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
        yield f'    """{" ".join(doc.split())}"""'
        yield ""
    elif isinstance(value, T.DType):
        yield f"{name}: Final[DType]"
    else:
        yield f"{name}: Any"


def _parameters(signature: inspect.Signature) -> str:
    """Parameters by name, of any type; which are left out is what matters."""
    parts, marked = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not marked:
            parts.append("*")
            marked = True
        stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        marked = marked or stars == "*"
        default = "" if p.default is p.empty else " = ..."
        parts.append(f"{stars}{p.name}: Any{default}")
    return ", ".join(parts)


if __name__ == "__main__":
    sys.stdout.write(stubs())
