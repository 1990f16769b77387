"""Arithmetic that also works on plain integers outside kernels: divisions, bits, min, max, select.

On Python numbers the result is a Python number, so grid sizes and shapes stay constants.
"""

from __future__ import annotations

import operator as python
from typing import Any

from tilelang.language.catalog import language_function
from tilelang.language.operands import IntLike, ScalarLike, integer, intrinsic
from tilelang.program import expr as ex
from tilelang.program import operators
from tilelang.program.context import current_span, reject
from tilelang.program.expr import BOOL, Const, Expr
from tilelang.program.unknown import is_unknown

_PYTHON: dict[str, Any] = {
    "//": python.floordiv, "%": python.mod, "&": python.and_, "|": python.or_, "^": python.xor,
    # Layout indices are never negative, so rounding down and toward zero agree.
    "truncdiv": python.floordiv, "truncmod": python.mod,
    "<<": lambda a, b: a * (1 << b), ">>": lambda a, b: a // (1 << b),
}  # fmt: skip


@language_function("scalar", outside=True)
def ceildiv(lhs: IntLike, rhs: IntLike, span: Any = None) -> Any:
    """Division rounded up: the number of tiles of `rhs` that cover `lhs`.

    Args:
        lhs, rhs: integers or integer expressions, `rhs` positive.

    >>> grid = T.ceildiv(N, block_N)
    """
    lhs, rhs = _plain(lhs), _plain(rhs)
    if isinstance(lhs, int) and isinstance(rhs, int):
        _refuse_zero("ceildiv", rhs)
        return -(-lhs // rhs)
    a, b = integer("ceildiv", "lhs", lhs), integer("ceildiv", "rhs", rhs)
    return operators.binary("//", operators.binary("-", operators.binary("+", a, b), 1), b)


@language_function("scalar", outside=True)
def floordiv(a: IntLike, b: IntLike, span: Any = None) -> Any:
    """Division rounded down, as Python's `//`.

    Args:
        a, b: integers or expressions.

    >>> head = T.floordiv(index, dim)
    """
    return _binary("floordiv", "//", a, b)


@language_function("scalar", outside=True)
def floormod(a: IntLike, b: IntLike, span: Any = None) -> Any:
    """Remainder with the sign of `b`, as Python's `%`.

    Args:
        a, b: integers or expressions.

    >>> lane = T.floormod(index, 32)
    """
    return _binary("floormod", "%", a, b)


@language_function("scalar", outside=True)
def truncdiv(a: IntLike, b: IntLike, span: Any = None) -> Any:
    """Division rounded toward 0, as C's `/`.

    Args:
        a, b: integers or expressions.

    >>> q = T.truncdiv(index, 32)
    """
    return _binary("truncdiv", "truncdiv", a, b)


@language_function("scalar", outside=True)
def truncmod(a: IntLike, b: IntLike, span: Any = None) -> Any:
    """Remainder with the sign of `a`, as C's `%`.

    Args:
        a, b: integers or expressions.

    >>> r = T.truncmod(index, 32)
    """
    return _binary("truncmod", "truncmod", a, b)


@language_function("scalar", outside=True)
def shift_left(x: IntLike, y: IntLike, span: Any = None) -> Any:
    """`x << y`.

    Args:
        x, y: integers or expressions.

    >>> mask = T.shift_left(1, lane)
    """
    return _binary("shift_left", "<<", x, y)


@language_function("scalar", outside=True)
def shift_right(x: IntLike, y: IntLike, span: Any = None) -> Any:
    """`x >> y`; arithmetic for signed, logical for unsigned integers.

    Args:
        x, y: integers or expressions.

    >>> nibble = T.shift_right(byte, 4) & 0xF
    """
    return _binary("shift_right", ">>", x, y)


@language_function("scalar", outside=True)
def bitwise_and(x: IntLike, y: IntLike, span: Any = None) -> Any:
    """`x & y`.

    Args:
        x, y: integers or expressions.

    >>> low = T.bitwise_and(byte, 0xF)
    """
    return _binary("bitwise_and", "&", x, y)


@language_function("scalar", outside=True)
def bitwise_or(x: IntLike, y: IntLike, span: Any = None) -> Any:
    """`x | y`.

    Args:
        x, y: integers or expressions.

    >>> word = T.bitwise_or(low, high)
    """
    return _binary("bitwise_or", "|", x, y)


@language_function("scalar", outside=True)
def bitwise_xor(x: IntLike, y: IntLike, span: Any = None) -> Any:
    """`x ^ y`.

    Args:
        x, y: integers or expressions.

    >>> swizzled = T.bitwise_xor(column, row)
    """
    return _binary("bitwise_xor", "^", x, y)


@language_function("scalar", outside=True)
def bitwise_not(x: IntLike, span: Any = None) -> Any:
    """`~x`.

    Args:
        x: integer or expression.

    >>> inverse = T.bitwise_not(mask)
    """
    return ~x if isinstance(x, int) else operators.invert(integer("bitwise_not", "x", x))


@language_function("scalar", outside=True)
def popcount(x: IntLike) -> Any:
    """How many bits are set.

    Args:
        x: integer; gives its dtype.

    >>> n = T.popcount(mask)
    """
    if isinstance(x, int) and x >= 0:
        return x.bit_count()
    value = integer("popcount", "x", x)
    return intrinsic("popcount", (value,), value.dtype)


@language_function("scalar", outside=True)
def clz(x: IntLike) -> Any:
    """How many leading bits are zero.

    Args:
        x: integer; gives int32.

    >>> n = T.clz(mask)
    """
    value = integer("clz", "x", x)
    return intrinsic("clz", (value,), operators.as_expr(0).dtype)


@language_function("scalar", outside=True)
def max_(a: ScalarLike, b: ScalarLike) -> Any:
    """The larger of two values.

    Args:
        a, b: numbers or expressions of any arithmetic dtype.

    >>> peak = T.max(peak, score)
    """
    if _are_numbers(a, b):
        return max(a, b)
    return operators.binary("max", a, b)


@language_function("scalar", outside=True)
def min_(a: ScalarLike, b: ScalarLike) -> Any:
    """The smaller of two values.

    Args:
        a, b: numbers or expressions of any arithmetic dtype.

    >>> rows = T.min(block_M, M - by * block_M)
    """
    if _are_numbers(a, b):
        return min(a, b)
    return operators.binary("min", a, b)


@language_function("scalar", outside=True)
def if_then_else(cond: ScalarLike, t: ScalarLike, f: ScalarLike, span: Any = None) -> Any:
    """`t` where the condition holds, else `f`; only the taken side is evaluated.

    Args:
        cond: bool expression; t, f: values, converted to a common dtype.

    >>> x = T.if_then_else(i < n, A[i], 0)
    """
    return _select(cond, t, f, lazy=True)


@language_function("scalar", outside=True)
def Select(
    condition: ScalarLike, true_value: ScalarLike, false_value: ScalarLike, span: Any = None
) -> Any:
    """`true_value` where the condition holds, else `false_value`; both are evaluated.

    Args:
        condition: bool expression; true_value, false_value: values, converted to a common dtype.

    >>> x = T.Select(i < n, a, b)
    """
    return _select(condition, true_value, false_value, lazy=False)


@language_function("scalar", outside=True)
def And(a: ScalarLike, b: ScalarLike, span: Any = None) -> Any:
    """Whether both conditions hold, as `a and b`.

    Args:
        a, b: conditions.

    >>> inside = T.And(i < M, j < N)
    """
    return operators.binary("and", a, b)


@language_function("scalar", outside=True)
def Or(a: ScalarLike, b: ScalarLike, span: Any = None) -> Any:
    """Whether at least one condition holds, as `a or b`.

    Args:
        a, b: conditions.

    >>> edge = T.Or(i == 0, j == 0)
    """
    return operators.binary("or", a, b)


@language_function("scalar", outside=True)
def Not(a: ScalarLike, span: Any = None) -> Any:
    """Whether a condition does not hold, as `not a`.

    Args:
        a: condition.

    >>> outside = T.Not(inside)
    """
    return operators.logical_not(a)


@language_function("scalar", outside=True)
def all_(*conditions: ScalarLike) -> Any:
    """Whether all conditions hold.

    Args:
        conditions: one or more.

    >>> inside = T.all(i < M, j < N, k < K)
    """
    return _chain("and", conditions)


@language_function("scalar", outside=True)
def any_(*conditions: ScalarLike) -> Any:
    """Whether any condition holds.

    Args:
        conditions: one or more.

    >>> edge = T.any(i == 0, j == 0)
    """
    return _chain("or", conditions)


@language_function("scalar", outside=True)
def likely(cond: ScalarLike, span: Any = None) -> Any:
    """The condition itself, marked as usually true.

    Args:
        cond: bool expression.

    >>> if T.likely(i < n):
    """
    return intrinsic("likely", (operators.as_condition(cond),), BOOL)


def _select(condition: Any, true: Any, false: Any, lazy: bool) -> Any:
    if is_unknown(condition):
        return condition
    test = operators.as_condition(condition)
    if isinstance(test, Const):
        return true if test.value else false
    a, b = _same_dtype(true, false)
    return ex.Select(test, a, b, lazy, a.dtype, current_span())


def _same_dtype(true: Any, false: Any) -> tuple[Expr, Expr]:
    if _are_numbers(true, false) and float in (type(true), type(false)):
        true, false = float(true), float(false)
    a, b = operators.as_operands(true, false, "if_then_else")
    common = operators.promote(a.dtype, b.dtype)
    if common is None:
        reject("TL236", f"the two values are {a.dtype} and {b.dtype}, which have no common dtype")
    return operators.cast(a, common), operators.cast(b, common)


def _chain(op: str, conditions: tuple[Any, ...]) -> Any:
    if not conditions:
        return op == "and"
    result = conditions[0]
    for condition in conditions[1:]:
        result = operators.binary(op, result, condition)
    return result


def _binary(function: str, op: str, a: Any, b: Any) -> Any:
    """An integer operation; a Python number when both operands are."""
    a, b = _plain(a), _plain(b)
    if op in ("//", "%", "truncdiv", "truncmod"):
        _refuse_zero(function, b)
    if _is_layout_index(a) or _is_layout_index(b):
        return _PYTHON[op](a, b)
    if not _are_ints(a, b):
        return operators.binary(op, a, b)
    folded = operators.binary(op, operators.as_expr(a), operators.as_expr(b))
    return int(folded.value) if isinstance(folded, Const) else folded


def _is_layout_index(value: Any) -> bool:
    """Whether this is an index inside the function of a `T.Layout`."""
    return type(value).__module__.startswith("tilelang.layout")


def _refuse_zero(function: str, divisor: Any) -> None:
    if isinstance(divisor, int) and divisor == 0:
        reject("TL117", f"`T.{function}` divides by zero", help="the divisor must not be 0")


def _plain(value: Any) -> Any:
    """NumPy integers as Python's."""
    is_index = hasattr(value, "__index__") and not isinstance(value, (Expr, bool))
    return python.index(value) if is_index and not _is_layout_index(value) else value


def _are_ints(*values: Any) -> bool:
    return all(isinstance(v, int) for v in values)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(v, (int, float)) for v in values)


FUNCTIONS = (
    ceildiv, floordiv, floormod, truncdiv, truncmod, shift_left, shift_right, bitwise_and,
    bitwise_or, bitwise_xor, bitwise_not, popcount, clz, max_, min_, if_then_else, Select, And, Or,
    Not, all_, any_, likely,
)  # fmt: skip
