"""Which kernel does `FILE[::KERNEL]` name? Reads and imports the file, and finds it there.

The file is imported under its own name, never as `__main__`; what it does when it is the program
does not happen.
"""

from __future__ import annotations

import ast
import io
import stat
import tokenize
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeAlias

import click

from tilelang.cli.importing import Failed, import_file
from tilelang.cli.project import project_values
from tilelang.language.file_values import FileValues
from tilelang.language.primfunc import PrimFunc
from tilelang.language.source import FunctionNode
from tilelang.language.unparsable import PARSE_ERRORS, checked_tree, unparsable
from tilelang.runtime.jit import JitFunction
from tilelang.runtime.style import style_of
from tilelang_diagnostics import Diagnostic, diagnose, did_you_mean, error_for, failure
from tilelang_diagnostics.model import Span

# A decorated function, a traced kernel, or a plain function that returns one.
Entry: TypeAlias = "JitFunction | PrimFunc | Callable[..., Any]"

_MOST_LISTED = 12
_LARGEST = 1 << 24  # bytes of a file; a device such as /dev/zero has no end


@dataclass(frozen=True, slots=True)
class KernelFile:
    """An imported file: its text, its tree, its module."""

    path: Path
    text: str
    tree: ast.Module
    module: ModuleType

    def values(self) -> FileValues:
        """What the file and its project say about values."""
        project = project_values(self.path)
        return FileValues(str(self.path), self.text, self.tree, vars(self.module), project)

    def uses_torch(self) -> bool:
        """Whether the file is about PyTorch tensors: it imports torch, or has names from there."""
        names = (
            a.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)
            for a in node.names
        )  # fmt: skip
        values = vars(self.module).values()
        homes = (getattr(v, "__module__", None) or getattr(v, "__name__", "") for v in values)
        return any(str(n).split(".")[0] == "torch" for n in (*names, *homes))

    def refuse_failed(self, name: str) -> None:
        """The error of a kernel that is wrong."""
        value = getattr(self.module, name, None)
        if isinstance(value, Failed):
            raise value.failure

    def kernels(self) -> dict[str, Entry]:
        """The kernels the file defines at top level, by name, in the order of their lines."""
        found: dict[str, Entry] = {}
        for node in self.tree.body:
            for name in _defined_names(node):
                value: Any = getattr(self.module, name, None)
                if isinstance(value, JitFunction | PrimFunc) or _is_factory(node, value):
                    found[name] = value
        return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kernel of a file."""

    file: KernelFile
    name: str
    entry: Entry

    @property
    def place(self) -> str:
        """`gemm.py::matmul`."""
        return f"{self.file.path}::{self.name}"


def choose(spec: str) -> Chosen:
    """The kernel `spec` names; TL103 to TL107 for a file or name that leads to none.

    A kernel that is named may be right where others of its file are not.
    """
    path_text, _, name = spec.partition("::")
    if not path_text:
        _refuse("TL103", "no file is named", "write FILE or FILE::KERNEL")
    file = load(Path(path_text), past_failures=bool(name))
    kernels = file.kernels()
    if name:
        file.refuse_failed(name)
        if name in kernels:
            return Chosen(file, name, kernels[name])
        inner = [k for k, v in kernels.items() if name in _inner_names(file, k)]
        if len(inner) == 1:
            return Chosen(file, inner[0], kernels[inner[0]])
        listed = _listed(kernels) or "none"
        _refuse("TL104", f"`{path_text}` has no kernel `{name}`{did_you_mean(name, kernels)}",
                f"its kernels are: {listed}")  # fmt: skip
    if not kernels:
        _refuse("TL104", f"`{path_text}` has no kernel",
                "a kernel is a function decorated with @T.prim_func or @tilelang.jit, or one that "
                "returns a @T.prim_func")  # fmt: skip
    if len(kernels) > 1:
        context = click.get_current_context(silent=True)
        lead = "  " if context is None else f"  {context.command_path} "
        lines = [f"{lead}{path_text}::{name}" for name in [*kernels][:_MOST_LISTED]]
        _refuse("TL105", f"`{path_text}` has {len(kernels)} kernels: {_listed(kernels)}",
                "\n".join(["name one:", *lines]))  # fmt: skip
    only = next(iter(kernels))
    return Chosen(file, only, kernels[only])


def _listed(kernels: Collection[str]) -> str:
    names = [f"`{k}`" for k in kernels]
    more = [f"and {len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
    return ", ".join(names[:_MOST_LISTED] + more)


def load(path: Path, past_failures: bool = False) -> KernelFile:
    """Read, parse and import a file; also one of whose kernels some are wrong, if that is asked."""
    text = read(path)
    try:
        tree = checked_tree(str(path), text)
    except PARSE_ERRORS as error:
        found = not_python(path) or unparsable(str(path), text, error)
        raise error_for((found,)) from None
    return KernelFile(path, text, tree, import_file(path, tree, past_failures))


def not_python(path: Path) -> Diagnostic | None:
    """TL103 for a file whose name says that it is no Python."""
    if path.suffix in ("", ".py", ".pyw", ".pyi"):
        return None
    return diagnose(
        "TL103",
        f"`{path}` is not a Python file",
        help="name the file that defines the kernel: kernels.py, or kernels.py::matmul",
    )


def read(path: Path) -> str:
    """The text of a file; TL103 or TL106."""
    if never_ends(path):
        _refuse("TL103", f"cannot read `{path}`: it is no regular file",
                "name a file with Python text")  # fmt: skip
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        siblings = _siblings(path)
        hint = did_you_mean(str(path), siblings).removeprefix("; ")
        if f"{path}.py" in siblings:
            hint = f"did you mean `{path}.py`?"
        reason = "no such file" if isinstance(error, FileNotFoundError) else reason
        _refuse("TL103", f"cannot read `{path}`: {reason}", hint)
    if len(data) > _LARGEST:
        _refuse("TL103", f"cannot read `{path}`: it has more than {_LARGEST >> 20} MiB",
                "name a file with Python text")  # fmt: skip
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode(encoding, "replace")) + 1
        _refuse("TL106", f"`{path}` is not valid {error.encoding.upper()}: byte "
                f"0x{data[error.start]:02x} in line {line}",
                "save it as UTF-8, or declare its encoding: # -*- coding: latin-1 -*-",
                Span(str(path), line, column, line, column + 1))  # fmt: skip
    except (SyntaxError, LookupError, UnicodeError) as error:  # what each codec raises is its own
        _refuse("TL106", f"`{path}` is not text in its declared encoding: {error}",
                "save it as UTF-8", Span(str(path), 1, 1, 1, 2))  # fmt: skip


def never_ends(path: Path) -> bool:
    """Whether opening or reading it may take for ever: pipes, sockets and devices."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # reading says what is wrong
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _defined_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        # `scheduled = tilelang.jit(out_idx=[2])(factory)`
        yield from (t.id for t in node.targets if isinstance(t, ast.Name))


def _is_factory(node: ast.stmt, value: Any) -> bool:
    return (
        isinstance(node, ast.FunctionDef)
        and not node.decorator_list
        and callable(value)
        and style_of(node) == "factory"
    )


def _inner_names(file: KernelFile, name: str) -> frozenset[str]:
    """Names of the @T.prim_func definitions inside the factory `name`."""
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return frozenset(
                n.name for n in ast.walk(node)
                if isinstance(n, ast.FunctionDef) and n is not node and _is_kernel(n)
            )  # fmt: skip
    return frozenset()


def _is_kernel(node: FunctionNode) -> bool:
    return any("prim_func" in ast.unparse(d) for d in node.decorator_list)


def _siblings(path: Path) -> list[str]:
    try:
        return [str(p) for p in path.parent.iterdir() if p.suffix == ".py"]
    except OSError:
        return []


def _refuse(code: str, message: str, help: str, span: Span | None = None) -> NoReturn:
    raise failure(code, message, span=span, help=help or None)
