"""Where does a definition begin, what marks it, and where is its name?

@tilelang.jit(out_idx=-1)        the first line, marked `jit`
def   matmul(A, B):              the name begins in column 7
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from tilelang_lint.functions import Function, first_line

__all__ = ["Definition", "Function", "first_line", "marks", "name_column"]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BEFORE_NAME = re.compile(r"(?:async\s+)?(?:def|class)\s+")


def marks(node: Definition) -> set[str]:
    """The last names of its decorators: `macro` of `@T.macro`, `jit` of `@tilelang.jit(…)`."""
    found = set()
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute):
            found.add(called.attr)
        elif isinstance(called, ast.Name):
            found.add(called.id)
    return found


def name_column(lines: Sequence[str], line: int, column: int) -> int:
    """The column of the name of a definition whose `def` or `class` stands there."""
    text = lines[line - 1] if line <= len(lines) else ""
    words = _BEFORE_NAME.match(text, column - 1)
    return column if words is None else words.end() + 1
