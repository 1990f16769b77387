"""Where no target is set: as on which GPU is a kernel shown?

    stand_in(ast.parse(text), 14)  ->  cuda:sm_90a, where the kernel calls T.wgmma_gemm

The oldest of a few usual ones that has every function of the language the kernel calls, those in
the functions of the file that it calls too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tilelang.language import FUNCTIONS
from tilelang.layouts.machine import NOMINAL
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError

# From old to new; the `a` spellings, since only they have all of their generation.
_LATER: Final = ("cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a")


def stand_in(tree: ast.Module, line: int) -> Target:
    """For the kernel whose name stands on a line; `NOMINAL` where nothing asks for more."""
    names = {name for name in _used(tree, line) if name in FUNCTIONS}
    for target in (str(NOMINAL), *_LATER):
        if all(_has(target, name) for name in names):
            return parse_target(target)
    return NOMINAL


def _has(target: str, name: str) -> bool:
    try:
        FUNCTIONS[name].check_target(target)
    except CompileError:
        return False
    return True


def _used(tree: ast.Module, line: int) -> set[str]:
    """The names after a dot in a definition and in what it calls."""
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    waiting = [f for f in functions.values() if f.lineno <= line <= (f.end_lineno or f.lineno)]
    seen: set[str] = set()
    found: set[str] = set()
    while waiting:
        function = waiting.pop()
        if function.name in seen:
            continue
        seen.add(function.name)
        found.update(_attributes(function))
        waiting += [
            functions[n.id] for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id in functions
        ]  # fmt: skip
    return found


def _attributes(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.attr
