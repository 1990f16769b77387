"""Python around kernels: definitions, imports, classes, `try`.

Inside a kernel only imports are possible. In the static environment, where module and factory
bodies are interpreted too, definitions become values that are interpreted when called.
"""

from __future__ import annotations

import ast
import importlib
from typing import TYPE_CHECKING, Any

from tilelang.language.frame import Frame
from tilelang.program.context import reject
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Span

if TYPE_CHECKING:
    from tilelang.language.imported_modules import ImportedModule, ImportedModules
    from tilelang.language.statements import Flow


IMPORTED = "imported_modules"  # the fact of a trace that says which files may be followed


def execute_def(frame: Frame, node: ast.FunctionDef) -> Flow:
    """A nested function: refused in kernels, a value in host code."""
    if frame.on_define is not None:
        value = frame.on_define(frame, node)
        span = frame.span(node)
        column = span.column + len("def ")
        name_span = type(span)(span.file, node.lineno, column, node.lineno, column + len(node.name))
        frame.bind(node.name, value, name_span)
        return "next"
    reject(
        "TL132",
        f"`def {node.name}` inside a kernel",
        help="define it outside with `@T.macro`, or use a lambda for an expression",
    )


def execute_class(frame: Frame, node: ast.ClassDef) -> Flow:
    if frame.host:
        frame.bind(node.name, Unknown(node.name), frame.span(node))
        return "next"
    reject("TL132", f"`class {node.name}` inside a kernel", help="define it outside")


def execute_import(frame: Frame, node: ast.Import) -> Flow:
    for alias in node.names:
        bound = alias.asname or alias.name.split(".")[0]
        module = _module(frame, alias.name if alias.asname else alias.name.split(".")[0])
        frame.bind(bound, module, _bound_span(frame, alias))
    return "next"


def execute_import_from(frame: Frame, node: ast.ImportFrom) -> Flow:
    for alias in node.names:
        bound = alias.asname or alias.name
        if alias.name == "*":
            frame.trace.facts["star_import"] = True
            _bind_all(frame, node, alias)
            continue
        frame.bind(bound, _member(frame, node, alias.name), _bound_span(frame, alias))
    return "next"


def _bind_all(frame: Frame, node: ast.ImportFrom, alias: ast.alias) -> None:
    """Bind the names of `from … import *`, as far as the files at hand say which these are."""
    module = _followed(frame, node.module or "", node.level) if frame.static else None
    for name, value in () if module is None else module.public().items():
        frame.bind(name, value, frame.span(alias))


def _bound_span(frame: Frame, alias: ast.alias) -> Span:
    """Where an import writes the name that it binds."""
    span = frame.span(alias)
    if alias.asname is None:
        return span
    return Span(span.file, span.end_line, span.end_column - len(alias.asname), span.end_line,
                span.end_column)  # fmt: skip


def execute_try(frame: Frame, node: ast.Try) -> Flow:
    from tilelang.language.inlining import HelperRaised
    from tilelang.language.statements import execute_block

    if not frame.host:
        reject(
            "TL130", "`try` is not part of the language", help="exceptions do not exist on devices"
        )
    # Which handler takes what the body raises is Python's business.
    frame.trace.speculative += 1
    try:
        return execute_block(frame, node.body)
    except HelperRaised:
        for handler in node.handlers:
            execute_block(frame, handler.body)
        return "next"
    finally:
        frame.trace.speculative -= 1


def _followed(frame: Frame, module: str, level: int) -> ImportedModule | None:
    """The module of a file that may be followed, as its text says it is."""
    modules: ImportedModules | None = frame.trace.facts.get(IMPORTED)
    return None if modules is None else modules.module(module, level, frame.source.path)


def _module(frame: Frame, name: str) -> Any:
    if frame.static:
        from tilelang.language.static_modules import static_module

        found = static_module(name)
        followed = _followed(frame, name, 0) if isinstance(found, Unknown) else None
        return found if followed is None else followed
    try:
        return importlib.import_module(name)
    except Exception as error:
        reject(
            "TL183",
            f"importing `{name}` raised {type(error).__name__}: {error}",
            help="import it at the top of the file",
        )


def _member(frame: Frame, node: ast.ImportFrom, name: str) -> Any:
    module = "." * node.level + (node.module or "")
    if frame.static:
        from tilelang.language.static_modules import static_module

        found = static_module(module)
        followed = (
            _followed(frame, node.module or "", node.level) if isinstance(found, Unknown) else None
        )
        return getattr(found if followed is None else followed, name, Unknown(name))
    try:
        package = frame.env.lookup("__package__") if node.level else None
        loaded = importlib.import_module(module, package if isinstance(package, str) else None)
        return getattr(loaded, name)
    except Exception as error:
        reject(
            "TL183",
            f"`from {module} import {name}` raised {type(error).__name__}: {error}",
            help="import it at the top of the file",
        )
