"""Where does a definition begin, what marks it, and where is its name?

@tilelang.jit(out_idx=-1)        the first line, marked `jit`
def   matmul(A, B):              the name begins in column 7
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BEFORE_NAME = re.compile(r"(?:async\s+)?(?:def|class)\s+")


def first_line(node: ast.stmt) -> int:
    """The line that a statement begins on, its decorators included."""
    lines: list[int] = [d.lineno for d in getattr(node, "decorator_list", ())]
    return min([node.lineno, *lines])


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


def function_around(tree: ast.AST, line: int) -> Function | None:
    """The innermost function that has a line in it."""
    held = [
        n for n in ast.walk(tree)
        if isinstance(n, Function) and first_line(n) <= line <= (n.end_lineno or n.lineno)
    ]  # fmt: skip
    return max(held, key=lambda n: n.lineno, default=None)


def name_column(lines: Sequence[str], line: int, column: int) -> int:
    """The column of the name of a definition whose `def` or `class` stands there."""
    text = lines[line - 1] if line <= len(lines) else ""
    words = _BEFORE_NAME.match(text, column - 1)
    return column if words is None else words.end() + 1
