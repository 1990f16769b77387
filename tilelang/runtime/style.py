"""Which of the ways to write a kernel is this `@tilelang.jit` function?

- *factory*: its source holds an inner `@T.prim_func`, or calling it returns one;
- *kernel*: its own body is the kernel (`T.Kernel`, `T.const`, declared arguments).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

Style = Literal["factory", "kernel", "unknown"]

# Calls that only make sense in the body of a kernel.
_KERNEL_CALLS = frozenset({"Kernel", "ClusterKernel", "CUDASourceCodeKernel", "const", "empty"})


def style_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Style:
    """What the text of a function says; "unknown" where only calling it can tell."""
    for inner in ast.walk(node):
        if inner is not node and isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_last_name(d) == "prim_func" for d in inner.decorator_list):
                return "factory"
    for statement in _own_statements(node.body):
        if isinstance(statement, ast.AnnAssign) and statement.value is None:
            return "kernel"
        for expression in ast.walk(statement):
            if isinstance(expression, ast.Call) and _last_name(expression) in _KERNEL_CALLS:
                return "kernel"
    return "unknown"


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement


def _last_name(node: ast.expr) -> str:
    """`prim_func` of `T.prim_func`, `prim_func` and `T.prim_func(...)`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
