"""What do the names mean that a file takes from other files, when nothing may be imported?

    from pkg.ops import double       the macro, as the text of pkg/ops.py defines it
    from config import BLOCK         the constant that config.py computes

The text of a module is interpreted as that of the file itself is: definitions, imports, constants;
never a call with effects. What it does not say stays unknown, as does all of a file that is not
among the given ones. `ModuleTexts` says which files there are; nothing here touches the disk.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from tilelang.language import expressions, statements
from tilelang.language.definitions import macro, prim_func
from tilelang.language.frame import MISSING, Definition, Frame, FrameEnvironment
from tilelang.language.hosting import IMPORTED
from tilelang.language.inlining import Macro, StaticFunction
from tilelang.language.source import FunctionNode, SourceFile
from tilelang.language.static_modules import JitMarker
from tilelang.language.symbols import SymbolTable
from tilelang.language.unparsable import PARSE_ERRORS
from tilelang.program.context import Reject, Trace, tracing
from tilelang.program.unknown import Unknown


class ModuleTexts(Protocol):
    """The files that may be followed."""

    def find(self, module: str, level: int, path: str) -> str | None:
        """The file that an import in `path` means; None for one that is not to be followed."""

    def text(self, path: str) -> str | None:
        """What a file says."""


class ModuleEnvironment:
    """Module scope in the static environment: nothing but builtins lies outside."""

    static = True

    def __init__(self, star_import: bool) -> None:
        self.star_import = star_import

    def lookup(self, name: str, span: Any = None) -> Any:
        if name in ("__name__", "__file__", "__doc__"):
            return Unknown(name)
        return Unknown(name) if self.star_import else MISSING

    def known_names(self) -> Iterator[str]:
        return iter(())


class ImportedModules:
    """The modules that files import, each read once."""

    def __init__(self, texts: ModuleTexts) -> None:
        self._texts = texts
        self._read: dict[str, ImportedModule] = {}

    def module(self, name: str, level: int, path: str) -> ImportedModule | None:
        """The module that an import in `path` means, None where it is not to be followed."""
        file = self._texts.find(name, level, path)
        if file is None:
            return None
        if file not in self._read:
            self._read[file] = ImportedModule(self, file)
        return self._read[file]

    def text(self, path: str) -> str:
        """What a file says; nothing where it cannot be read."""
        return self._texts.text(path) or ""


class ImportedModule:
    """A module by attribute, read when the first is asked for; what it does not say is unknown."""

    def __init__(self, modules: ImportedModules, path: str) -> None:
        self._modules = modules
        self._path = path
        self._frame: Frame | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        local = self._names().names.get(name)
        if local is not None:
            return _own(local.value)
        inner = self._modules.module(name, 1, self._path)
        return Unknown(name) if inner is None else inner

    def public(self) -> dict[str, Any]:
        """What `from … import *` takes, as far as it is known."""
        names = self._names().names
        listed = names.get("__all__")
        if listed is not None and isinstance(listed.value, (list, tuple)):
            wanted = [n for n in listed.value if isinstance(n, str)]
        else:
            wanted = [n for n in names if not n.startswith("_")]
        return {n: getattr(self, n) for n in wanted}

    def _names(self) -> Frame:
        """The names read so far: all of them, unless a cycle of imports asks meanwhile."""
        if self._frame is None:
            trace = Trace()
            trace.facts[IMPORTED] = self._modules
            source = _source(self._path, self._modules.text(self._path))
            self._frame = frame = Frame(
                trace, source, ModuleEnvironment(_has_star(source.tree)), SymbolTable(),
                "<module>", host=True, on_define=_define,
            )  # fmt: skip
            with tracing(trace):
                for node in source.tree.body:
                    execute_module_statement(frame, node)
        return self._frame


def execute_module_statement(frame: Frame, node: ast.stmt) -> None:
    """Definitions, imports and constants; never a call of a function of the file."""
    if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        return
    if isinstance(node, (ast.Expr, ast.For, ast.While, ast.With, ast.Assert, ast.Raise)):
        return
    with suppress(statements.TooLarge, RecursionError):
        statements.execute(frame, node)


def _define(frame: Frame, node: FunctionNode) -> Any:
    """A macro or helper is what its text says; kernels and what makes them are not looked into."""
    definition = Definition(node.name, frame.source, node, FrameEnvironment(frame))
    marks = [_decorator(frame, d) for d in node.decorator_list]
    if any(m is macro for m in marks):
        return Macro(definition)
    if any(m is prim_func or isinstance(m, JitMarker) for m in marks):
        return Unknown(node.name)
    if marks or any(isinstance(n, ast.FunctionDef) and n.decorator_list for n in ast.walk(node)
                    if n is not node):  # fmt: skip
        return Unknown(node.name)
    return StaticFunction(definition, frame)


def _decorator(frame: Frame, node: ast.expr) -> Any:
    try:
        return expressions.evaluate(frame, node)
    except Reject:
        return Unknown("decorator")


def _own(value: Any) -> Any:
    """A value that whoever takes it may change: containers are copied."""
    match value:
        case list():
            return [_own(v) for v in value]
        case dict():
            return {k: _own(v) for k, v in value.items()}
        case set():
            return set(value)
        case _:
            return value


def _source(path: str, text: str) -> SourceFile:
    try:
        return SourceFile.parse(path, text)
    except PARSE_ERRORS:
        return SourceFile.parse(path, "")


def _has_star(tree: ast.Module) -> bool:
    return any(
        isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names) for n in tree.body
    )
