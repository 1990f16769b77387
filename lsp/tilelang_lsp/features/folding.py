"""textDocument/foldingRange: definitions, loops, launches, branches, brackets, comments.

Read from the text alone, so that a half-written file folds as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.recovery import recover


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines `first` to `last` fold into the first."""

    first: int
    last: int
    kind: Literal["region", "imports", "comment"] | None = None


def folds(request: Request) -> tuple[Fold, ...]:
    """All that can be folded, each once."""
    found = dict.fromkeys((*_blocks(request.text), *_comments(request.text)))
    return tuple(sorted(found, key=lambda f: (f.first, -f.last)))


FEATURE = Feature("textDocument/foldingRange", folds, "newest")

_BLOCKS = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.With, ast.If,
    ast.Try, ast.ExceptHandler, ast.Match,
)  # fmt: skip


def _blocks(text: str) -> Iterator[Fold]:
    readable = recover(text)
    if readable is None:
        return
    for node in ast.walk(readable.tree):
        last = getattr(node, "end_lineno", None)
        if isinstance(node, _BLOCKS) and last is not None and last > node.lineno:
            first = node.lineno
            yield Fold(first, last)
            for name in ("orelse", "finalbody"):
                part = getattr(node, name, [])
                if part and part[0].lineno > first + 1 and not isinstance(part[0], ast.If):
                    yield Fold(part[0].lineno - 1, part[-1].end_lineno or last)
        elif isinstance(node, ast.expr) and last is not None and last > node.lineno:
            if isinstance(node, (ast.Call, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Constant)):
                yield Fold(node.lineno, last)
        elif isinstance(node, ast.match_case):
            first, last = node.pattern.lineno, node.body[-1].end_lineno or 0
            if last > first:
                yield Fold(first, last)
    yield from _imports(readable.tree)


def _imports(tree: ast.Module) -> Iterator[Fold]:
    """Those that stand together."""
    for are, group in groupby(tree.body, lambda n: isinstance(n, ast.Import | ast.ImportFrom)):
        nodes = list(group) if are else []
        if nodes and (nodes[-1].end_lineno or 0) > nodes[0].lineno:
            yield Fold(nodes[0].lineno, nodes[-1].end_lineno or 0, "imports")


def _comments(text: str) -> Iterator[Fold]:
    first: int | None = None
    regions: list[int] = []
    lines = split_lines(text)
    for number, line in enumerate((*lines, ""), 1):
        comment = re.match(r"\s*#\s*(end)?region\b", line)
        if comment is not None:
            if comment[1] is None:
                regions.append(number)
            elif regions:
                yield Fold(regions.pop(), number, "region")
        if line.lstrip().startswith("#"):
            first = number if first is None else first
            continue
        if first is not None and number - first > 1:
            yield Fold(first, number - 1, "comment")
        first = None
