"""Integer reasoning without TVM: normal forms, equality, divisibility and simple bounds.

An integer expression is kept as a sum of products with integer coefficients; anything that is
not `+ - *` (a floor division, a load) is one opaque factor, identified by its structure. That is
exact for equality of sums of products, and says "unknown" for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from tilelang.program import expr as ex
from tilelang.program import operators
from tilelang.program.unknown import is_unknown

Monomial: TypeAlias = tuple[Any, ...]
Polynomial: TypeAlias = dict[Monomial, int]


def same(left: Any, right: Any) -> bool:
    """Whether two dims or expressions are certainly equal."""
    if is_unknown(left) or is_unknown(right):
        return True
    if isinstance(left, ex.Expr) or isinstance(right, ex.Expr):
        return normal_form(left) == normal_form(right)
    return bool(left == right)


def surely_different(left: Any, right: Any) -> bool:
    """Whether two dims certainly differ: their difference is a non-zero constant."""
    if is_unknown(left) or is_unknown(right):
        return False
    difference = _subtract(normal_form(left), normal_form(right))
    return set(difference) == {()}


def shapes_surely_differ(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two shapes certainly differ, in rank or in one dim."""
    return len(left) != len(right) or any(map(surely_different, left, right))


def simplify(value: Any) -> Any:
    """A Python int when the value is a known integer, else the value itself."""
    number = constant_value(value)
    return value if number is None else number


def constant_value(value: Any) -> int | None:
    """The integer a dim or expression certainly is, or None."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if not isinstance(value, ex.Expr) or not (value.dtype.is_integer or value.dtype.kind == "bool"):
        return None
    if isinstance(value, ex.Const):
        return int(value.value)
    if isinstance(value, ex.Var) and value.definition is None:
        return None
    form = normal_form(value)
    if not form:
        return 0
    return form[()] if set(form) == {()} else None


def as_dim(value: Any) -> Any:
    """An extent as a Python int when it is one, else the expression."""
    return simplify(value)


def decide(condition: ex.Expr) -> bool | None:
    """Truth of a comparison whose two sides differ by a constant; None when unknown."""
    if not isinstance(condition, ex.Binary) or condition.op not in (
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
    ):
        return None
    if not condition.left.dtype.is_integer:
        return None
    difference = _subtract(normal_form(condition.left), normal_form(condition.right))
    if difference and set(difference) != {()}:
        return None
    gap = difference.get((), 0)
    return {
        "<": gap < 0, "<=": gap <= 0, ">": gap > 0, ">=": gap >= 0, "==": gap == 0, "!=": gap != 0
    }[condition.op]  # fmt: skip


def substitute(value: Any, values: Mapping[ex.Var, Any]) -> Any:
    """`value` with variables replaced, refolded on the way up."""
    if not isinstance(value, ex.Expr):
        return value
    match value:
        case ex.Var():
            if value in values or value.definition is None:
                return values.get(value, value)
            inner = substitute(value.definition, values)
            return value if same(inner, value.definition) else inner
        case ex.Binary(op=op, left=left, right=right):
            return operators.binary(op, substitute(left, values), substitute(right, values))
        case ex.Cast(operand=operand, dtype=dtype):
            return operators.cast(substitute(operand, values), dtype)
        case ex.Unary(op="-", operand=operand):
            return -substitute(operand, values)
        case ex.Select(condition=condition, true=true, false=false):
            known = constant_value(substitute(condition, values))
            if known is not None:
                return substitute(true if known else false, values)
            return value
        case _:
            return value


def spelled_out(value: ex.Expr) -> ex.Expr:
    """`value` with what its names stand for, where that stays the same wherever it is asked for."""
    match value:
        case ex.Var(definition=ex.Expr() as definition) if _is_pure(definition):
            return spelled_out(definition)
        case ex.Binary(left=left, right=right):
            return replace(value, left=spelled_out(left), right=spelled_out(right))
        case ex.Unary(operand=operand) | ex.Cast(operand=operand):
            return replace(value, operand=spelled_out(operand))
        case _:
            return value


def _is_pure(value: ex.Expr) -> bool:
    """No memory is read and nothing is called, through names too."""
    return not any(
        isinstance(n, ex.Load | ex.Intrinsic | ex.Vector)
        or (isinstance(n, ex.Var) and n.definition is not None and not _is_pure(n.definition))
        for n in ex.walk(value)
    )


def normal_form(value: Any) -> Polynomial:
    """`value` as {sorted factors: coefficient}; the constant term has the empty key."""
    if isinstance(value, (bool, int)):
        return {(): int(value)} if value else {}
    if not isinstance(value, ex.Expr):
        return {(("?", repr(value)),): 1}
    return dict(_form(value))


@lru_cache(maxsize=4096)  # checks ask for the same indices over and over
def _form(value: ex.Expr) -> Polynomial:
    match value:
        case ex.Const(value=number) if value.dtype.is_integer or value.dtype.kind == "bool":
            return {(): int(number)} if number else {}
        case ex.Var(definition=ex.Expr() as definition) if value.dtype.is_integer:
            return normal_form(definition)
        case ex.Binary(op="+", left=left, right=right) if value.dtype.is_integer:
            return _add(normal_form(left), normal_form(right))
        case ex.Binary(op="-", left=left, right=right) if value.dtype.is_integer:
            return _subtract(normal_form(left), normal_form(right))
        case ex.Binary(op="*", left=left, right=right) if value.dtype.is_integer:
            return _multiply(normal_form(left), normal_form(right))
        case ex.Binary(op="//", left=left, right=right) if value.dtype.is_integer:
            return _divide(value, left, right)
        case ex.Unary(op="-", operand=operand) if value.dtype.is_integer:
            return _subtract({}, normal_form(operand))
        case ex.Cast(operand=operand) if value.dtype.is_integer and operand.dtype.is_integer:
            # Widening keeps the value; sizes and indices never overflow by assumption.
            return normal_form(operand)
        case _:
            return {(structure(value),): 1}


def structure(value: Any) -> Any:
    """A hashable key: equal keys mean certainly equal values."""
    match value:
        case ex.Var():
            return ("var", id(value))
        case ex.Const(value=number):
            return ("const", number, value.dtype.name)
        case ex.Binary(op=op, left=left, right=right):
            if value.dtype.is_integer and op in ("+", "-", "*"):
                return ("sum", tuple(sorted(normal_form(value).items(), key=repr)))
            return (op, structure(left), structure(right))
        case ex.Unary(op=op, operand=operand):
            return (op, structure(operand))
        case ex.Cast(operand=operand):
            return ("cast", value.dtype.name, structure(operand))
        case ex.Select(condition=condition, true=true, false=false):
            return ("select", structure(condition), structure(true), structure(false))
        case ex.Load(buffer=buffer, indices=indices):
            return ("load", id(buffer), tuple(structure(i) for i in indices))
        case ex.Vector(lanes=lanes):
            return ("vector", tuple(structure(lane) for lane in lanes))
        case ex.Intrinsic(name=name, args=args):
            inner = tuple(structure(a) if isinstance(a, ex.Expr) else id(a) for a in args)
            return ("call", name, inner)
        case _:
            return ("value", repr(value))


def _add(left: Polynomial, right: Polynomial) -> Polynomial:
    out = dict(left)
    for key, coefficient in right.items():
        out[key] = out.get(key, 0) + coefficient
    return {key: coefficient for key, coefficient in out.items() if coefficient}


def _subtract(left: Polynomial, right: Polynomial) -> Polynomial:
    return _add(left, {key: -coefficient for key, coefficient in right.items()})


def _multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    out: Polynomial = {}
    for a, m in left.items():
        for b, n in right.items():
            key = tuple(sorted((*a, *b), key=repr))
            out[key] = out.get(key, 0) + m * n
    return {key: coefficient for key, coefficient in out.items() if coefficient}


def _divide(value: ex.Expr, left: ex.Expr, right: ex.Expr) -> Polynomial:
    """`left // right`: exact when every coefficient of `left` is a multiple of a constant."""
    divisor = constant_value(right)
    numerator = normal_form(left)
    if divisor and all(coefficient % divisor == 0 for coefficient in numerator.values()):
        return {key: coefficient // divisor for key, coefficient in numerator.items()}
    return {(structure(value),): 1}
