"""What the body of an index map is: integer expressions traced from a lambda.

A user's `lambda i, j: (i, j ^ i)` is called once with `Var`s; what comes back is a small tree.
The tree serves every evaluation: over ints, over numpy arrays, and over any symbolic object with
the same operators. Building a node simplifies it by the known ranges of the variables, so that
`(i*64 + j) // 64` is `i` when `j < 64`. Division and remainder round down, as in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

Expr: TypeAlias = "Const | Var | Binary"

# Bounds of an expression nothing is known about; wide enough for any shared memory or register.
_UNKNOWN = 1 << 62

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "^": operator.xor,
    "&": operator.and_,
    "|": operator.or_,
}
# Python's own precedences, so that the text evaluates to what the tree does.
_PRECEDENCE = {"|": 1, "^": 2, "&": 3, "+": 4, "-": 4, "*": 5, "//": 5, "%": 5}


class _Operators:
    """Arithmetic that builds trees, and a refusal of what has no tree (comparisons, `if`)."""

    __slots__ = ()

    def __add__(self, other: Any) -> Expr:
        return _build("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _build("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _build("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _build("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _build("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _build("*", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _build("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _build("//", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _build("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _build("%", other, self)

    def __xor__(self, other: Any) -> Expr:
        return _build("^", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return _build("^", other, self)

    def __and__(self, other: Any) -> Expr:
        return _build("&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _build("&", other, self)

    def __or__(self, other: Any) -> Expr:
        return _build("|", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _build("|", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return _build("*", self, 1 << operator.index(other))

    def __rshift__(self, other: Any) -> Expr:
        return _build("//", self, 1 << operator.index(other))

    def __neg__(self) -> Expr:
        return _build("-", 0, self)

    # A silent structural answer to `i == 0` would trace one branch as if it held everywhere.
    def __eq__(self, other: object) -> bool:
        raise TypeError("an index has no value while its map is traced")

    def __bool__(self) -> bool:
        raise TypeError("an index has no value while its map is traced")

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Const(_Operators):
    """A number."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Var(_Operators):
    """The `position`-th index, in `range(extent)`."""

    position: int
    extent: int


@dataclass(frozen=True, slots=True, eq=False)
class Binary(_Operators):
    """`lhs op rhs`, with the range its value lies in."""

    op: str
    lhs: Expr
    rhs: Expr
    low: int = field(repr=False)
    high: int = field(repr=False)


def as_expr(value: Any) -> Expr:
    """`value` as a tree; a TypeError when it is neither an integer nor a traced expression."""
    if isinstance(value, (Const, Var, Binary)):
        return value
    try:
        return Const(operator.index(value))
    except TypeError:
        raise TypeError(
            f"an index map returns integers and integer expressions, got {type(value).__name__}"
        ) from None


def evaluate(expr: Expr, values: Sequence[Any]) -> Any:
    """The value of `expr` for `values` of its variables: ints, arrays or symbolic objects."""
    match expr:
        case Const():
            return expr.value
        case Var():
            return values[expr.position]
        case Binary():
            return _OPS[expr.op](evaluate(expr.lhs, values), evaluate(expr.rhs, values))
        case _ as never:
            assert_never(never)


def text(expr: Expr, names: Sequence[str]) -> str:
    """`expr` as Python source over `names`."""
    return _text(expr, names, 0)


def bounds(expr: Expr) -> tuple[int, int]:
    """The least and the greatest value `expr` may take, both inclusive."""
    match expr:
        case Const():
            return expr.value, expr.value
        case Var():
            return 0, expr.extent - 1
        case Binary():
            return expr.low, expr.high
        case _ as never:
            assert_never(never)


def same(a: Expr, b: Expr) -> bool:
    """Whether two trees are written the same (not: always have the same value)."""
    match a, b:
        case Const(), Const():
            return a.value == b.value
        case Var(), Var():
            return a.position == b.position
        case Binary(), Binary():
            return a.op == b.op and same(a.lhs, b.lhs) and same(a.rhs, b.rhs)
        case _:
            return False


def _text(expr: Expr, names: Sequence[str], outer: int) -> str:
    match expr:
        case Const():
            return str(expr.value) if expr.value >= 0 else f"({expr.value})"
        case Var():
            return names[expr.position]
        case Binary():
            level = _PRECEDENCE[expr.op]
            # Left-associative: an operand of the same level needs brackets only on the right.
            # Python reads `a + b ^ c` as `(a + b) ^ c`; few people do, so that is written out.
            inner = _PRECEDENCE["*"] if expr.op in "^&|" else level
            lhs = _text(expr.lhs, names, inner)
            rhs = _text(expr.rhs, names, max(inner, level + 1))
            gap = "" if level == _PRECEDENCE["*"] else " "
            body = f"{lhs}{gap}{expr.op}{gap}{rhs}"
            return f"({body})" if level < outer else body
        case _ as never:
            assert_never(never)


def _build(op: str, left: Any, right: Any) -> Expr:
    lhs, rhs = as_expr(left), as_expr(right)
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        return Const(_OPS[op](lhs.value, rhs.value))
    if op in ("+", "*", "^", "&", "|") and isinstance(lhs, Const):
        lhs, rhs = rhs, lhs
    if isinstance(rhs, Const):
        simpler = _with_constant(op, lhs, rhs.value)
        if simpler is not None:
            return simpler
    if op in ("-", "^") and same(lhs, rhs):
        return Const(0)
    low, high = _range(op, bounds(lhs), bounds(rhs))
    return Binary(op, lhs, rhs, low, high)


def _with_constant(op: str, lhs: Expr, c: int) -> Expr | None:
    """A simpler form of `lhs op c`, or None."""
    match op:
        case "+" | "-" | "^" | "|":
            if c == 0:
                return lhs
            signed = c if op == "+" else -c
            match lhs:
                case Binary("+", inner, Const(value)) if op in "+-":
                    return inner + (value + signed)
                case _:
                    return None
        case "*":
            if c == 0:
                return Const(0)
            if c == 1:
                return lhs
            factor = _factor(lhs)
            return None if factor is None else _build("*", factor[0], factor[1] * c)
        case "//":
            return _divided(lhs, c)
        case "%":
            return _remainder(lhs, c)
        case "&":
            # `x & (2**k - 1)` is a remainder for every integer, negative ones too.
            return _build("%", lhs, c + 1) if c >= 0 and c & (c + 1) == 0 else None
        case _:
            return None


def _divided(lhs: Expr, c: int) -> Expr | None:
    low, high = bounds(lhs)
    if c == 1:
        return lhs
    if c < 1:
        return None
    if low >= 0 and high < c:
        return Const(0)
    whole, rest = _split(lhs, c)
    if whole is not None:
        return whole if rest is None else _build("+", whole, _build("//", rest, c))
    for unit in sorted({f for f in _factors(lhs) if f > 1 and c % f == 0}, reverse=True):
        # (x*unit + rest) // c with rest < unit: the rest cannot carry.
        whole, rest = _split(lhs, unit)
        if whole is not None and (rest is None or 0 <= bounds(rest)[0] <= bounds(rest)[1] < unit):
            return _build("//", whole, c // unit)
    match lhs:
        case Binary("//", inner, Const(d)) if d > 0:
            return _build("//", inner, d * c)
        case Binary("%", inner, Const(d)) if d > 0 and d % c == 0:
            return _build("%", _build("//", inner, c), d // c)
        case _:
            return None


def _remainder(lhs: Expr, c: int) -> Expr | None:
    low, high = bounds(lhs)
    if c == 1:
        return Const(0)
    if c < 1:
        return None
    if low >= 0 and high < c:
        return lhs
    whole, rest = _split(lhs, c)
    if whole is not None:
        return Const(0) if rest is None else _build("%", rest, c)
    factor = _factor(lhs)
    if factor is not None and c % factor[1] == 0:
        return _build("*", _build("%", factor[0], c // factor[1]), factor[1])
    match lhs:
        case Binary("%", inner, Const(d)) if d % c == 0:
            return _build("%", inner, c)
        case _:
            return None


def _split(expr: Expr, c: int) -> tuple[Expr | None, Expr | None]:
    """`expr == whole*c + rest`: the terms of a sum that `c` divides, and the others."""
    if isinstance(expr, Binary) and expr.op == "+":
        (lw, lr), (rw, rr) = _split(expr.lhs, c), _split(expr.rhs, c)
        return _sum(lw, rw), _sum(lr, rr)
    factor = _factor(expr)
    if factor is not None and factor[1] % c == 0:
        return _build("*", factor[0], factor[1] // c), None
    if isinstance(expr, Const) and expr.value % c == 0:
        return Const(expr.value // c), None
    return None, expr


def _factors(expr: Expr) -> list[int]:
    """The constant factors of the terms of a sum."""
    if isinstance(expr, Binary) and expr.op == "+":
        return _factors(expr.lhs) + _factors(expr.rhs)
    factor = _factor(expr)
    return [] if factor is None else [factor[1]]


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _factor(expr: Expr) -> tuple[Expr, int] | None:
    """`x, c` of `x * c` with a positive constant `c`."""
    match expr:
        case Binary("*", inner, Const(value)) if value > 0:
            return inner, value
        case _:
            return None


def _range(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    unknown = (-_UNKNOWN, _UNKNOWN)
    match op:
        case "+":
            low, high = a[0] + b[0], a[1] + b[1]
        case "-":
            low, high = a[0] - b[1], a[1] - b[0]
        case "*":
            corners = [x * y for x in a for y in b]
            low, high = min(corners), max(corners)
        case "//":
            if b[0] < 1:
                return unknown
            corners = [x // y for x in a for y in b]
            low, high = min(corners), max(corners)
        case "%":
            if b[0] < 1:
                return unknown
            low, high = 0, b[1] - 1
        case "^" | "|" | "&":
            if min(a[0], b[0]) < 0:
                return unknown
            low, high = 0, (1 << max(a[1], b[1]).bit_length()) - 1
        case _:
            return unknown
    return max(low, -_UNKNOWN), min(high, _UNKNOWN)
