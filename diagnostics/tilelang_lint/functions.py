"""Which function is a line in, and where does a statement begin?"""

from __future__ import annotations

import ast

Function = ast.FunctionDef | ast.AsyncFunctionDef


def first_line(node: ast.stmt) -> int:
    """The line that a statement begins on, its decorators included."""
    lines: list[int] = [d.lineno for d in getattr(node, "decorator_list", ())]
    return min([node.lineno, *lines])


def function_around(tree: ast.AST, line: int) -> Function | None:
    """The innermost function that has a line in it."""
    held = [
        n for n in ast.walk(tree)
        if isinstance(n, Function) and first_line(n) <= line <= (n.end_lineno or n.lineno)
    ]  # fmt: skip
    return max(held, key=lambda n: n.lineno, default=None)
