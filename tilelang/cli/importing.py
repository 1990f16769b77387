"""How is a kernel's file imported: as a whole, or past what fails, for one kernel of it?

Where a kernel is named, what the others do is of no interest: a statement of the file that ends in
a CompileError binds its names to a `Failed`, which raises that error where it is used.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.machinery
import importlib.util
import operator
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tilelang.cli.slow import told_if_slow
from tilelang.cli.user_code import is_same_file, raised
from tilelang.language.source import syntax_error
from tilelang_diagnostics import CompileError, error_for
from tilelang_diagnostics.model import Diagnostic

# What `from __future__ import …` switches on for the statements below it.
_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class Failed:
    """What a statement would have bound, had it not failed."""

    def __init__(self, error: CompileError) -> None:
        self.failure = error

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self.failure

    def __getitem__(self, key: Any) -> NoReturn:
        raise self.failure

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked of anything, such as where it was defined
            raise AttributeError(name)
        raise self.failure


def import_file(path: Path, tree: ast.Module, past_failures: bool = False) -> ModuleType:
    """The module of a file; what it raises is a finding, but for kernels nobody asked for."""
    module = _new_module(path)
    with _as_a_program_of(path), told_if_slow(f"importing {path}"):
        try:
            if past_failures:
                # As an import names it: a file that changes the folder keeps its source.
                _run(tree, path.absolute(), vars(module))
            else:
                assert module.__spec__ is not None and module.__spec__.loader is not None
                module.__spec__.loader.exec_module(module)
        except CompileError:
            raise
        except KeyboardInterrupt as stopped:
            raise KeyboardInterrupt(_interrupted(path, stopped)) from None
        except BaseException as error:
            raise error_for((_import_failure(path, error),)) from error
    return module


def _new_module(path: Path) -> ModuleType:
    name = re.sub(r"\W", "_", path.stem)
    if name in sys.modules or name == "__main__":
        # Another module of that name is in use, perhaps by the file itself.
        name = f"tilelang_file_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        # Only names that end in .py have a loader of their own.
        loader = importlib.machinery.SourceFileLoader(name, str(path))
        spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    return module


def _run(tree: ast.Module, path: Path, names: dict[str, Any]) -> None:
    """Run a file statement by statement."""
    compile(tree, str(path), "exec", dont_inherit=True)  # refuses what has no place in a module
    names["__doc__"] = ast.get_docstring(tree, clean=False)
    flags = 0
    for statement in tree.body:
        code = compile(
            ast.Module([statement], []), str(path), "exec", flags=flags, dont_inherit=True
        )
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            flags |= code.co_flags & _FUTURE
        before = dict(names)
        try:
            exec(code, names)
        except Exception as error:
            failure = _cause(statement, names, error)
            if failure is None:
                raise
            for name in _bound(statement):
                if names.get(name, names) is before.get(name, names):
                    names[name] = Failed(failure)


def _cause(statement: ast.stmt, names: dict[str, Any], error: Exception) -> CompileError | None:
    """Why a statement failed: because of one before it, or of a kernel in it that is wrong."""
    used = (names.get(n.id) for n in ast.walk(statement) if isinstance(n, ast.Name))
    before = next((value.failure for value in used if isinstance(value, Failed)), None)
    return before or (error if isinstance(error, CompileError) else None)


def _bound(statement: ast.AST) -> Iterator[str]:
    """The names that a statement of a module binds there."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (a.asname or a.name.partition(".")[0] for a in aliases if a.name != "*")
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case _:
            for child in ast.iter_child_nodes(statement):
                yield from _bound(child)


@contextmanager
def _as_a_program_of(path: Path) -> Iterator[None]:
    """Imports find the file's neighbours, and its argument parser finds no arguments of ours."""
    argv, sys.argv = sys.argv, [str(path)]
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.argv = argv
        # The folder stays on the path: kernels may import when they are traced.


def _interrupted(path: Path, stopped: KeyboardInterrupt) -> str:
    """What was going on, for who asks why it took so long."""
    frames = traceback.extract_tb(stopped.__traceback__)
    lines = [x.lineno for x in frames if is_same_file(x.filename, path) and x.lineno]
    return f"while importing {path}" + (f", in line {lines[-1]}" if lines else "")


def _import_failure(path: Path, error: BaseException) -> Diagnostic:
    if isinstance(error, SyntaxError) and is_same_file(error.filename, path):
        # What only the compiler refuses, such as `await` outside of an async function.
        return syntax_error(str(path), error)
    help = None
    if isinstance(error, SystemExit):
        help = 'code that only runs as a program belongs under if __name__ == "__main__":'
    elif isinstance(error, ModuleNotFoundError):
        help = f"install it, for instance with pip install {(error.name or '').split('.')[0]}"
    return raised(error, "TL107", f"importing `{path}`", path, help)
