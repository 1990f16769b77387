"""What is wrong with edited IR, and where in the file?"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

from tilelang_diagnostics import diagnose, did_you_mean
from tilelang_diagnostics.model import Diagnostic, Span

_HELP: Final = "`--ir OUT` writes IR that reads: compare the line with it"


class Mistake(Exception):
    """A piece of the text that means nothing, or something impossible."""

    def __init__(self, code: str, message: str, node: ast.AST, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.details = code, message, node, details

    def diagnostic(self, file: str, lines: list[str]) -> Diagnostic:
        """As it is shown."""
        span = span_of(self.node, file, lines)
        details = {**self.details, "help": self.details.get("help") or _HELP}
        return diagnose(self.code, self.message, span, **details)


def unforeseen(error: Exception, node: ast.AST) -> Mistake:
    """What an exception says, as a mistake in a statement."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return Mistake("TL116", f"this has no meaning: {reason[:200]}", node)


def meant(name: str, known: Iterable[str]) -> str:
    """Which name was meant, as a sentence; "" if none comes near."""
    return did_you_mean(name, known).removeprefix("; ")


class Silent(Exception):
    """A consequence of a mistake that was already found."""


def span_of(node: ast.AST, file: str, lines: list[str]) -> Span:
    """The place of a piece of the text; `ast` counts bytes, a span characters."""
    line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
    end_line = line if end_line is None else end_line
    start = _characters(lines, line, getattr(node, "col_offset", 0))
    end = _characters(lines, end_line, getattr(node, "end_col_offset", None) or 0)
    if isinstance(node, ast.stmt) and hasattr(node, "body"):  # its header alone
        end_line, end = line, len(lines[line - 1].split("#@")[0].rstrip()) + 1
    return Span(file, line, start, end_line, max(end, start) if end_line == line else end)


def _characters(lines: list[str], line: int, offset: int) -> int:
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode()[:offset].decode(errors="replace")) + 1
