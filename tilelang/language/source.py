"""Where a kernel's text is: a parsed file, and the AST node of a function object in it."""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilelang_diagnostics import diagnose, error_for
from tilelang_diagnostics.model import Diagnostic, Severity, Span


@dataclass(frozen=True, slots=True, eq=False)
class SourceFile:
    """One file's text and tree; `span` turns AST positions (UTF-8 bytes) into code points."""

    path: str
    text: str
    tree: ast.Module
    lines: list[str] = field(repr=False)
    _is_ascii: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_is_ascii", self.text.isascii())

    @staticmethod
    def parse(path: str, text: str) -> SourceFile:
        """Parse `text`; raises SyntaxError as Python does."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python's own, not about kernels
            tree = ast.parse(text, filename=path)
        return SourceFile(path, text, tree, text.split("\n"))

    def span(self, node: ast.AST) -> Span:
        """The code-point span of `node`."""
        line: int = node.lineno  # type: ignore[attr-defined]
        end_line: int = node.end_lineno or line  # type: ignore[attr-defined]
        start_byte: int = node.col_offset  # type: ignore[attr-defined]
        end_byte: int = node.end_col_offset or 0  # type: ignore[attr-defined]
        if self._is_ascii:
            column, end = start_byte + 1, end_byte + 1
        else:
            column, end = self._column(line, start_byte), self._column(end_line, end_byte)
        return Span(
            self.path, line, column, end_line, max(end, column) if line == end_line else end
        )

    def line_span(self, line: int) -> Span:
        """The whole text of one line."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Span(self.path, line, 1, line, len(text) + 1)

    def _column(self, line: int, byte_offset: int) -> int:
        if line > len(self.lines):
            return byte_offset + 1
        text = self.lines[line - 1]
        if text.isascii():
            return byte_offset + 1
        return len(text.encode()[:byte_offset].decode(errors="replace")) + 1


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_parsed: dict[str, SourceFile] = {}


def source_of(function: Callable[..., Any]) -> tuple[SourceFile, FunctionNode]:
    """The file and definition of a function object, notebook cells included.

    Raises CompileError TL102 for functions without source text (REPL, `exec`).
    """
    function = inspect.unwrap(function)
    code = function.__code__
    path = code.co_filename
    lines = linecache.getlines(path, function.__globals__)
    if not lines:
        raise error_for((_no_source(function.__name__, path),))
    source = _parse_cached(path, "".join(lines))
    node = find_function(source.tree, function.__name__, code.co_firstlineno)
    if node is None:
        raise error_for((_not_there(function.__name__, path, code.co_firstlineno),))
    return source, node


def find_function(tree: ast.AST, name: str, first_line: int) -> FunctionNode | None:
    """The `def name` whose first line, decorators included, is `first_line`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if start <= first_line <= node.lineno:
                return node
    return None


def _parse_cached(path: str, text: str) -> SourceFile:
    known = _parsed.get(path)
    if known is None or known.text != text:
        try:
            known = SourceFile.parse(path, text)
        except SyntaxError as error:
            raise error_for((syntax_error(path, error),)) from None
        _parsed[path] = known
    return known


def syntax_error(path: str, error: SyntaxError) -> Diagnostic:
    """Python's own complaint as TL101."""
    line, column = max(1, error.lineno or 1), max(1, error.offset or 1)
    end_line, end_column = error.end_lineno or line, error.end_offset or column + 1
    if (end_line, end_column) <= (line, column):
        end_line, end_column = line, column + 1
    return Diagnostic(
        code="TL101",
        severity=Severity.ERROR,
        message=f"syntax error: {error.msg}",
        span=Span(path, line, column, end_line, end_column),
    )


def _not_there(name: str, path: str, line: int) -> Diagnostic:
    """TL102 for a function that is not where Python says it was defined."""
    if name == "<lambda>":
        return diagnose(
            "TL102", f"a lambda is no kernel (line {line} of {path})", help="write it with `def`"
        )
    return diagnose(
        "TL102",
        f"`{name}` is not in line {line} of {path}, where it was defined",
        notes=("the file has probably changed since it was imported",),
        help="import it again, or restart Python",
    )


def _no_source(name: str, path: str) -> Diagnostic:
    return Diagnostic(
        code="TL102",
        severity=Severity.ERROR,
        message=f"the source of `{name}` cannot be read (defined in {path})",
        notes=("kernels are parsed from their text, which `exec` and the plain REPL do not keep",),
        help="put the kernel into a file or a notebook cell",
    )
