"""Which pipelined loops does a kernel have, and what is in them that should overlap?

What the front end made of a kernel is a kernel in the language, so that Python's own parser reads
it, whether it was recorded here or comes from a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tilelang_trace.model import Line, Step

Kind = Literal["copy", "gemm"]
_TENSORS: Final = ("Tensor", "StridedTensor")
_GLOBALS: Final = ("empty", "alloc_global")
_COPIES: Final = ("copy", "tma_copy")
_GEMMS: Final = ("gemm", "wgmma_gemm", "tcgen05_gemm")
_SCOPES: Final = ("shared", "shared.dyn")


@dataclass(frozen=True, slots=True)
class Found:
    """A statement that should become asynchronous copies or matrix instructions. `around` is the
    loop over elements it stands in, `fills` the shared tile a copy fills; `under` says that a
    condition of the loop decides about it."""

    kind: Kind
    line: Line
    around: Line | None = None
    fills: str = ""
    under: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """One `T.Pipelined` loop. `asked` is 0 for as many stages as fit."""

    variable: str
    line: Line
    asked: int
    statements: tuple[Found, ...]


def pipelined_loops(step: Step) -> tuple[Loop, ...]:
    """Those of a program in the language, in its order; () for text that is no Python."""
    try:
        tree = ast.parse(step.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    reader = _Reader(step, tree)
    loops = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.For) and _called(node.iter) == "Pipelined"
    ]  # fmt: skip
    return tuple(reader.loop(node) for node in sorted(loops, key=lambda node: node.lineno))


class _Reader:
    def __init__(self, step: Step, tree: ast.Module) -> None:
        self._lines = step.lines
        self._tensors = {s.name for s in step.symbols if s.scope == "global"}
        self._shared = {s.name for s in step.symbols if s.scope in _SCOPES}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and _called(node.annotation) in _TENSORS:
                self._tensors.add(node.arg)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                made = _called(node.value)
                if made in _GLOBALS:
                    self._tensors.add(node.targets[0].id)
                elif made == "alloc_shared":
                    self._shared.add(node.targets[0].id)

    def loop(self, node: ast.For) -> Loop:
        assert isinstance(node.iter, ast.Call)
        found = tuple(self._within(node.body, None))
        return Loop(ast.unparse(node.target), self._line(node), _asked(node.iter), found)

    def _line(self, node: ast.stmt) -> Line:
        return self._lines[node.lineno - 1]

    def _within(
        self, body: Sequence[ast.stmt], around: Line | None, under: bool = False
    ) -> Iterator[Found]:
        for stmt in body:
            if fills := self._filled(stmt):
                yield Found("copy", self._line(stmt), around, fills, under)
            elif isinstance(stmt, ast.Expr) and _called(stmt.value) in _GEMMS:
                yield Found("gemm", self._line(stmt), around, "", under)
            is_nest = isinstance(stmt, ast.For) and _called(stmt.iter) == "Parallel"
            inside = self._line(stmt) if is_nest else around
            for field in ("body", "orelse"):
                inner = getattr(stmt, field, [])
                yield from self._within(inner, inside, under or isinstance(stmt, ast.If))

    def _filled(self, stmt: ast.stmt) -> str:
        """The shared tile a statement fills from a tensor."""
        sources: set[str] = set()
        target: ast.expr | None = None
        if isinstance(stmt, ast.Expr) and _called(stmt.value) in _COPIES:
            assert isinstance(stmt.value, ast.Call)
            source, target = stmt.value.args[:2]
            sources = {_base(source)}
        elif isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Subscript):
            target = stmt.targets[0]
            sources = {_base(n) for n in ast.walk(stmt.value) if isinstance(n, ast.Subscript)}
        if target is None or not sources & self._tensors or _base(target) not in self._shared:
            return ""
        return _base(target)


def _asked(call: ast.Call) -> int:
    """How many stages a loop asks for; 0 for as many as fit."""
    said = {word.arg: word.value for word in call.keywords}
    if stages := _numbers(said.get("stage")):
        return _apart(stages, _numbers(said.get("order")) or range(len(stages)))
    match said.get("num_stages"):
        case ast.Constant(value=int(number)):
            return max(number, 1)
        case ast.Constant(value="auto"):
            return 0
    return 1


def _apart(stages: Sequence[int], order: Sequence[int]) -> int:
    """How many versions of a tile two statements need that are the furthest apart."""
    placed = list(zip(stages, order, strict=False))
    return max(1, *(b - a + (first < then) for a, first in placed for b, then in placed))


def _numbers(node: ast.expr | None) -> list[int]:
    try:
        found = () if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return []
    return [n for n in found if isinstance(n, int)] if isinstance(found, (tuple, list)) else []


def _called(node: ast.expr | None) -> str:
    """`copy` for `T.copy(…)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def _base(node: ast.expr) -> str:
    """The buffer of `A`, `A[i]`, `T.region(A[i])`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        else:
            return node.id if isinstance(node, ast.Name) else ""
