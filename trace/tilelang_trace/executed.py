"""How often does a thread execute an instruction, where the program says so?

Machine code is counted as it stands; a loop executes it again and again. After the last pass a
program still has its loops, and each operation in them becomes one instruction: operations are
counted as often as their loops run. Known are loops of constant range and conditions on their
variables. A condition on the thread alone decides which threads execute something, so that what
is told is of those. Anything else makes the number unknown, and then it is not told.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from tilelang_diagnostics import Span
from tilelang_trace.model import Line, Step

_LOOPS: Final = ("serial", "unroll", "Pipelined", "vectorized", "range")
_MOST_VISITS: Final = 50_000
_BINARY: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARE: Final[dict[type[ast.cmpop], Callable[[int, int], bool]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


class _Unknown(Exception):
    """What an expression is cannot be told."""


class _TooLong(Exception):
    """Counting takes too long."""


def executed(step: Step, names_of: Callable[[str], Iterable[str]]) -> dict[Span, Counter[str]]:
    """By statement of Python, how many of each kind of instruction a thread executes; nothing of
    statements of which that is unknown. `names_of` reads a line of the program."""
    try:
        tree = ast.parse(step.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    counter = _Counter(step.lines, names_of)
    try:
        counter.block(tree.body, {}, 1)
    except _TooLong:
        return {}
    return {span: n for span, n in counter.found.items() if span not in counter.unknown}


class _Counter:
    def __init__(self, lines: Sequence[Line], names_of: Callable[[str], Iterable[str]]) -> None:
        self._lines, self._names_of = lines, names_of
        self.found: dict[Span, Counter[str]] = {}
        self.unknown: set[Span] = set()
        self._threads: set[str] = set()
        self._visits = 0

    def block(self, body: Sequence[ast.stmt], known: dict[str, int], times: int) -> None:
        """Count what a body executes when it runs so often."""
        for stmt in body:
            self._visits += 1
            if self._visits > _MOST_VISITS:
                raise _TooLong
            self._statement(stmt, known, times)

    def _statement(self, stmt: ast.stmt, known: dict[str, int], times: int) -> None:
        match stmt:
            case ast.FunctionDef(body=body) | ast.With(body=body):
                self.block(body, known, times)
            case ast.For():
                self._loop(stmt, known, times)
            case ast.If():
                self._branch(stmt, known, times)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind(name, value, known)
            case ast.Expr():
                self._count(stmt, times)
            case ast.Return() | ast.Pass() | ast.Assign() | ast.AugAssign():
                pass
            case _:
                self._lose([stmt])

    def _count(self, stmt: ast.stmt, times: int) -> None:
        line = self._lines[stmt.lineno - 1]
        if line.span is not None:
            for name in self._names_of(line.text):
                self.found.setdefault(line.span, Counter())[name] += times

    def _lose(self, body: Sequence[ast.stmt]) -> None:
        """Of what is inside nothing is known."""
        for node in (n for stmt in body for n in ast.walk(stmt)):
            if isinstance(node, ast.stmt):
                span = self._lines[node.lineno - 1].span
                if span is not None:
                    self.unknown.add(span)

    def _loop(self, loop: ast.For, known: dict[str, int], times: int) -> None:
        leaves = any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in ast.walk(loop))
        try:
            run = self._range(loop.iter, known)
        except _Unknown:
            run = None
        if run is None or leaves or not isinstance(loop.target, ast.Name):
            self._lose(loop.body)
            return
        # What is the same in every iteration is looked at once.
        same = [stmt for stmt in loop.body if not _decides(stmt)]
        other = [s for s in loop.body if isinstance(s, ast.Assign) or _decides(s)]
        inside = {name: n for name, n in known.items() if name != loop.target.id}
        self.block(same, inside, times * len(run))
        if any(map(_decides, other)):
            for value in run:
                self.block(other, {**known, loop.target.id: value}, times)

    def _range(self, call: ast.expr, known: dict[str, int]) -> range | None:
        if not isinstance(call, ast.Call) or _called(call) not in _LOOPS:
            return None
        bounds = [_value(x, known) for x in call.args]
        return range(*bounds) if 1 <= len(bounds) <= 2 else None

    def _branch(self, stmt: ast.If, known: dict[str, int], times: int) -> None:
        try:
            holds = _value(stmt.test, known)
        except _Unknown:
            names = {n.id for n in ast.walk(stmt.test) if isinstance(n, ast.Name)}
            if names and names <= self._threads:
                for body in (stmt.body, stmt.orelse):
                    self.block(body, dict(known), times)
            else:
                self._lose([*stmt.body, *stmt.orelse])
            return
        self.block(stmt.body if holds else stmt.orelse, known, times)

    def _bind(self, name: str, value: ast.expr, known: dict[str, int]) -> None:
        known.pop(name, None)
        self._threads.discard(name)
        if isinstance(value, ast.Call) and _called(value) == "get_thread_binding":
            self._threads.add(name)
            return
        try:
            known[name] = _value(value, known)
        except _Unknown:
            return


@lru_cache(maxsize=4096)
def _decides(stmt: ast.stmt) -> bool:
    """Whether how often something inside runs may depend on a variable around it."""
    return any(
        isinstance(n, ast.If) or (isinstance(n, ast.For) and not _is_constant(n.iter))
        for n in ast.walk(stmt)
    )


def _is_constant(call: ast.expr) -> bool:
    return isinstance(call, ast.Call) and all(isinstance(x, ast.Constant) for x in call.args)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _value(e: ast.expr, known: dict[str, int]) -> int:
    match e:
        case ast.Constant(value=bool() | int() as number):
            return int(number)
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
            try:
                return _BINARY[type(op)](_value(a, known), _value(b, known))
            except ZeroDivisionError:
                raise _Unknown from None
        case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _COMPARE:
            return int(_COMPARE[type(op)](_value(a, known), _value(b, known)))
        case ast.BoolOp(op=ast.And(), values=values):
            return int(all(_value(x, known) for x in values))
        case ast.BoolOp(op=ast.Or(), values=values):
            return int(any(_value(x, known) for x in values))
        case ast.UnaryOp(op=ast.Not(), operand=a):
            return int(not _value(a, known))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return -_value(a, known)
    raise _Unknown
