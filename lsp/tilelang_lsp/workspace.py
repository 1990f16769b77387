"""Which kernels, macros and functions are there in the folders that the editor has open?

Read as text and kept by time of change; only files that mention the language are looked at.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilelang_diagnostics import Span

MOST_FILES = 5_000
SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "site-packages"})


@dataclass(frozen=True, slots=True)
class Defined:
    """A definition somewhere in the workspace."""

    name: str
    kind: str
    span: Span
    container: str


class Workspace:
    """The files below some folders."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, tuple[Defined, ...]]] = {}

    def files(self, folders: Iterable[str]) -> Iterator[str]:
        """The Python files that mention the language, at most some thousand."""
        count = 0
        for folder in dict.fromkeys(folders):
            for path in _python_files(folder):
                count += 1
                if count > MOST_FILES:
                    return
                if self._definitions(path):
                    yield path

    def symbols(self, folders: Iterable[str], query: str) -> tuple[Defined, ...]:
        """Definitions whose name holds the letters of `query` in order."""
        wanted = query.lower()
        found = [
            d for path in self.files(folders) for d in self._definitions(path)
            if _matches(wanted, d.name.lower())
        ]  # fmt: skip
        return tuple(sorted(found, key=lambda d: (len(d.name), d.name, d.span)))

    def _definitions(self, path: str) -> tuple[Defined, ...]:
        try:
            stamp = os.stat(path).st_mtime_ns
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                text = Path(path).read_text(encoding="utf-8")
                found = tuple(definitions(text, path)) if "tilelang" in text else ()
                self._known[path] = known = (stamp, found)
        except (OSError, UnicodeDecodeError):
            return ()
        return known[1]


def definitions(text: str, path: str) -> Iterator[Defined]:
    """The functions and classes of a text; none if it cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _below(tree.body, path, "")


def _below(body: list[ast.stmt], path: str, container: str) -> Iterator[Defined]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            word = 6 if isinstance(node, ast.ClassDef) else 4
            column = node.col_offset + word + 1
            span = Span(path, node.lineno, column, node.lineno, column + len(node.name))
            yield Defined(node.name, _kind(node), span, container)
            yield from _below(node.body, path, node.name)


def _kind(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        return "class"
    marks = [ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list]
    if "macro" in marks:
        return "macro"
    return "kernel" if {"prim_func", "jit"} & set(marks) else "function"


def _matches(wanted: str, name: str) -> bool:
    position = 0
    for letter in wanted:
        position = name.find(letter, position) + 1
        if position == 0:
            return False
    return True


def _python_files(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        yield from (os.path.join(root, name) for name in sorted(files) if name.endswith(".py"))
